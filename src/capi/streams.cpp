// OrtSyncStream, copies between devices, and resources of other APIs. The CPU has no streams and
// imports nothing.
#include <string_view>

#include "capi/arguments.h"
#include "capi/env.h"
#include "capi/ep_device.h"
#include "capi/handles.h"
#include "capi/run_options.h"
#include "capi/slots.h"
#include "capi/status.h"
#include "capi/tensor_arguments.h"

namespace tenon::capi {
namespace {

Status NoImporter(const OrtExternalResourceImporter* importer) {
  TENON_RETURN_IF_NULL(importer);
  return InvalidArgument("the importer is none of this library's");
}

}  // namespace

OrtStatus* CreateSyncStreamForEpDevice(const OrtEpDevice* ep_device, const OrtKeyValuePairs*,
                                       OrtSyncStream** stream) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_device);
    TENON_RETURN_IF_NULL(stream);
    *stream = nullptr;
    return NotImplemented("{} has no streams", ep_device->ep_name);
  });
}

void* SyncStream_GetHandle(OrtSyncStream*) noexcept { return nullptr; }

void ReleaseSyncStream(OrtSyncStream*) noexcept {}

void RunOptionsSetSyncStream(OrtRunOptions* options, OrtSyncStream* sync_stream) noexcept {
  if (options == nullptr) return;
  options->sync_stream = sync_stream;
  // What the caller's stream waits for must not happen twice.
  options->run.not_repeatable = sync_stream == nullptr ? nullptr : "sync_stream";
}

OrtStatus* CopyTensors(const OrtEnv* env, const OrtValue* const* src_tensors,
                       OrtValue* const* dst_tensors, OrtSyncStream*, size_t num_tensors) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL_ARRAY(src_tensors, num_tensors);
    TENON_RETURN_IF_NULL_ARRAY(dst_tensors, num_tensors);
    for (size_t i = 0; i < num_tensors; ++i) {
      TENON_ASSIGN_OR_RETURN(const Tensor* const from, TensorOf(src_tensors[i]));
      TENON_ASSIGN_OR_RETURN(Tensor* const into, TensorOf(dst_tensors[i]));
      const bool is_host = from->memory().IsHostAccessible() && into->memory().IsHostAccessible();
      TENON_RETURN_IF_ERROR(is_host
                                ? CopyElements(*from, *into)
                                : env->shared->environment.transfers().CopyTensor(*from, *into));
    }
    return OkStatus();
  });
}

OrtStatus* CreateExternalResourceImporterForDevice(
    const OrtEpDevice* ep_device, OrtExternalResourceImporter** out_importer) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_device);
    TENON_RETURN_IF_NULL(out_importer);
    *out_importer = nullptr;
    return OkStatus();
  });
}

void ReleaseExternalResourceImporter(OrtExternalResourceImporter*) noexcept {}

OrtStatus* CanImportMemory(const OrtExternalResourceImporter* importer, OrtExternalMemoryHandleType,
                           bool*) noexcept {
  return AtBoundary([&] { return NoImporter(importer); });
}

OrtStatus* ImportMemory(OrtExternalResourceImporter* importer, const OrtExternalMemoryDescriptor*,
                        OrtExternalMemoryHandle**) noexcept {
  return AtBoundary([&] { return NoImporter(importer); });
}

void ReleaseExternalMemoryHandle(OrtExternalMemoryHandle*) noexcept {}

OrtStatus* CreateTensorFromMemory(OrtExternalResourceImporter* importer,
                                  const OrtExternalMemoryHandle*,
                                  const OrtExternalTensorDescriptor*, OrtValue**) noexcept {
  return AtBoundary([&] { return NoImporter(importer); });
}

OrtStatus* CanImportSemaphore(const OrtExternalResourceImporter* importer, OrtExternalSemaphoreType,
                              bool*) noexcept {
  return AtBoundary([&] { return NoImporter(importer); });
}

OrtStatus* ImportSemaphore(OrtExternalResourceImporter* importer,
                           const OrtExternalSemaphoreDescriptor*,
                           OrtExternalSemaphoreHandle**) noexcept {
  return AtBoundary([&] { return NoImporter(importer); });
}

void ReleaseExternalSemaphoreHandle(OrtExternalSemaphoreHandle*) noexcept {}

OrtStatus* WaitSemaphore(OrtExternalResourceImporter* importer, OrtExternalSemaphoreHandle*,
                         OrtSyncStream*, uint64_t) noexcept {
  return AtBoundary([&] { return NoImporter(importer); });
}

OrtStatus* SignalSemaphore(OrtExternalResourceImporter* importer, OrtExternalSemaphoreHandle*,
                           OrtSyncStream*, uint64_t) noexcept {
  return AtBoundary([&] { return NoImporter(importer); });
}

OrtStatus* InitGraphicsInteropForEpDevice(const OrtEpDevice* ep_device,
                                          const OrtGraphicsInteropConfig* config) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_device);
    TENON_RETURN_IF_NULL(config);
    return NotImplemented("{} works with no graphics API", ep_device->ep_name);
  });
}

OrtStatus* DeinitGraphicsInteropForEpDevice(const OrtEpDevice* ep_device) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_device);
    return NotImplemented("{} works with no graphics API", ep_device->ep_name);
  });
}

}  // namespace tenon::capi
