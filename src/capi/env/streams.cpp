// OrtSyncStream, copies between devices, and work with graphics APIs.
#include <string_view>
#include <vector>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/env.h"
#include "capi/env/ep_device.h"
#include "capi/env/ep_source.h"
#include "capi/options/run_options.h"
#include "capi/value/tensor_arguments.h"

namespace tenon::capi {
namespace {

// A null `config` undoes it.
Status SetGraphicsInterop(const OrtEpDevice& device, const OrtGraphicsInteropConfig* config) {
  if (device.source != nullptr) return device.source->SetGraphicsInterop(device, config);
  return NotImplemented("{} works with no graphics API", device.ep_name);
}

}  // namespace

OrtStatus* CreateSyncStreamForEpDevice(const OrtEpDevice* ep_device,
                                       const OrtKeyValuePairs* stream_options,
                                       OrtSyncStream** stream) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_device);
    TENON_RETURN_IF_NULL(stream);
    *stream = nullptr;
    if (ep_device->source == nullptr) {
      return NotImplemented("{} has no streams", ep_device->ep_name);
    }
    TENON_ASSIGN_OR_RETURN(auto made, ep_device->source->MakeStream(*ep_device, stream_options));
    *stream = made.release();
    return OkStatus();
  });
}

void* SyncStream_GetHandle(OrtSyncStream* stream) noexcept {
  return stream == nullptr ? nullptr : stream->handle();
}

void ReleaseSyncStream(OrtSyncStream* input) noexcept { delete input; }

void RunOptionsSetSyncStream(OrtRunOptions* options, OrtSyncStream* sync_stream) noexcept {
  if (options == nullptr) return;
  options->run.stream = sync_stream;
  // The work for which the caller's stream waits must not be done twice.
  options->run.not_repeatable = sync_stream == nullptr ? nullptr : "sync_stream";
}

OrtStatus* CopyTensors(const OrtEnv* env, const OrtValue* const* src_tensors,
                       OrtValue* const* dst_tensors, OrtSyncStream* stream,
                       size_t num_tensors) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(src_tensors);
    TENON_RETURN_IF_NULL(dst_tensors);
    if (num_tensors == 0) return InvalidArgument("there are no tensors to copy");
    std::vector<TensorCopy> copies;
    for (size_t i = 0; i < num_tensors; ++i) {
      TensorCopy& copy = copies.emplace_back();
      TENON_ASSIGN_OR_RETURN(copy.from, TensorOf(src_tensors[i]));
      TENON_ASSIGN_OR_RETURN(copy.into, TensorOf(dst_tensors[i]));
      if (!(copy.from->shape() == copy.into->shape())) {
        return InvalidArgument("tensor {}: cannot copy shape {} into shape {}", i,
                               copy.from->shape(), copy.into->shape());
      }
    }
    return env->shared->environment.transfers().Copy(copies, stream);
  });
}

OrtStatus* InitGraphicsInteropForEpDevice(const OrtEpDevice* ep_device,
                                          const OrtGraphicsInteropConfig* config) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_device);
    TENON_RETURN_IF_NULL(config);
    return SetGraphicsInterop(*ep_device, config);
  });
}

OrtStatus* DeinitGraphicsInteropForEpDevice(const OrtEpDevice* ep_device) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_device);
    return SetGraphicsInterop(*ep_device, nullptr);
  });
}

}  // namespace tenon::capi
