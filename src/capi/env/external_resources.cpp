// Memory and semaphores of other APIs, which plugins import.
#include <map>
#include <memory>
#include <utility>

#include "base/exception_barrier.h"
#include "base/mutex.h"
#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/ep_device.h"
#include "capi/env/ep_source.h"

struct OrtExternalResourceImporter {
  OrtExternalResourceImporterImpl* impl;
  std::string provider;
  std::shared_ptr<tenon::capi::EpSource> source;
  std::shared_ptr<void> hold;  // destroyed after impl
};

namespace tenon::capi {
namespace {

// Imported objects. Each keeps its plugin loaded, because a handle may outlive its importer.
class ImportedResources {
 public:
  void Add(const void* handle, std::shared_ptr<void> hold) {
    const MutexLock lock(mutex_);
    holds_[handle] = std::move(hold);
  }
  std::shared_ptr<void> Take(const void* handle) {
    const MutexLock lock(mutex_);
    const auto taken = holds_.extract(handle);
    return taken ? std::move(taken.mapped()) : nullptr;
  }

 private:
  Mutex mutex_;
  std::map<const void*, std::shared_ptr<void>> holds_;
};

ImportedResources& Imported() {
  // Never destroyed: clients may release their handles while the process ends.
  static auto* const imported = new ImportedResources();
  return *imported;
}

template <class Descriptor>
Status CheckVersion(const Descriptor& descriptor) {
  if (descriptor.version <= ORT_API_VERSION) return OkStatus();
  return InvalidArgument("the descriptor is of version {}, this library knows those up to {}",
                         descriptor.version, ORT_API_VERSION);
}

Status Lacks(const OrtExternalResourceImporter& importer, const char* slot) {
  return NotImplemented("the resource importer of {} lacks {}", importer.provider, slot);
}
Status GaveNothing(const OrtExternalResourceImporter& importer, const char* slot) {
  return Fail("{} of the resource importer of {} gave nothing", slot, importer.provider);
}

// The result of body(), a call into the plugin.
template <class Body>
Status CallImporter(Body&& body) {
  return CatchExceptions([&] { return TakeOrtStatus(body()); });
}

// Lets the plugin import the resource of `descriptor`, through the slot of its importer.
template <class Handle, class Descriptor>
Status Import(OrtExternalResourceImporter& importer, const char* what,
              OrtStatus*(ORT_API_CALL* slot)(OrtExternalResourceImporterImpl*, const Descriptor*,
                                             Handle**),
              const Descriptor& descriptor, Handle** out) {
  *out = nullptr;
  TENON_RETURN_IF_ERROR(CheckVersion(descriptor));
  if (slot == nullptr) return Lacks(importer, what);
  Handle* made = nullptr;
  TENON_RETURN_IF_ERROR(CallImporter([&] { return slot(importer.impl, &descriptor, &made); }));
  if (made == nullptr) return GaveNothing(importer, what);
  if (made->Release == nullptr) {
    return Fail("{} of the resource importer of {} gave a handle that lacks Release", what,
                importer.provider);
  }
  Imported().Add(made, importer.source->Hold(LibraryObject::kResource));
  *out = made;
  return OkStatus();
}

template <class Handle>
void Release(Handle* handle) noexcept {
  if (handle == nullptr) return;
  const std::shared_ptr<void> hold = Imported().Take(handle);
  (void)CatchExceptions([&] {
    handle->Release(handle);
    return OkStatus();
  });
}

// A wait or a signal, through the slot of the plugin's importer.
OrtStatus* Order(
    OrtExternalResourceImporter* importer, const char* what,
    decltype(OrtExternalResourceImporterImpl::WaitSemaphore) OrtExternalResourceImporterImpl::*slot,
    OrtExternalSemaphoreHandle* semaphore_handle, OrtSyncStream* stream, uint64_t value) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(importer);
    TENON_RETURN_IF_NULL(semaphore_handle);
    TENON_RETURN_IF_NULL(stream);
    const auto function = importer->impl->*slot;
    if (function == nullptr) return Lacks(*importer, what);
    return CallImporter([&] { return function(importer->impl, semaphore_handle, stream, value); });
  });
}

}  // namespace

OrtStatus* CreateExternalResourceImporterForDevice(
    const OrtEpDevice* ep_device, OrtExternalResourceImporter** out_importer) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_device);
    TENON_RETURN_IF_NULL(out_importer);
    *out_importer = nullptr;
    if (ep_device->source == nullptr) return OkStatus();
    auto importer = std::make_unique<OrtExternalResourceImporter>();
    TENON_ASSIGN_OR_RETURN(importer->impl, ep_device->source->MakeImporter(*ep_device));
    if (importer->impl == nullptr) return OkStatus();
    importer->provider = ep_device->ep_name;
    importer->source = ep_device->source;
    importer->hold = ep_device->source->Hold(LibraryObject::kImporter);
    *out_importer = importer.release();
    return OkStatus();
  });
}

void ReleaseExternalResourceImporter(OrtExternalResourceImporter* input) noexcept {
  if (input != nullptr) {
    (void)CatchExceptions([&] {
      input->impl->Release(input->impl);
      return OkStatus();
    });
  }
  delete input;
}

OrtStatus* CanImportMemory(const OrtExternalResourceImporter* importer,
                           OrtExternalMemoryHandleType handle_type, bool* out_supported) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(importer);
    TENON_RETURN_IF_NULL(out_supported);
    *out_supported = false;
    const auto function = importer->impl->CanImportMemory;
    if (function == nullptr) return OkStatus();
    return CatchExceptions([&] {
      *out_supported = function(importer->impl, handle_type);
      return OkStatus();
    });
  });
}

OrtStatus* ImportMemory(OrtExternalResourceImporter* importer,
                        const OrtExternalMemoryDescriptor* desc,
                        OrtExternalMemoryHandle** out_handle) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(importer);
    TENON_RETURN_IF_NULL(desc);
    TENON_RETURN_IF_NULL(out_handle);
    return Import(*importer, "ImportMemory", importer->impl->ImportMemory, *desc, out_handle);
  });
}

void ReleaseExternalMemoryHandle(OrtExternalMemoryHandle* input) noexcept { Release(input); }

OrtStatus* CreateTensorFromMemory(OrtExternalResourceImporter* importer,
                                  const OrtExternalMemoryHandle* mem_handle,
                                  const OrtExternalTensorDescriptor* tensor_desc,
                                  OrtValue** out_tensor) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(importer);
    TENON_RETURN_IF_NULL(mem_handle);
    TENON_RETURN_IF_NULL(tensor_desc);
    TENON_RETURN_IF_NULL(out_tensor);
    *out_tensor = nullptr;
    TENON_RETURN_IF_ERROR(CheckVersion(*tensor_desc));
    TENON_RETURN_IF_NULL_ARRAY(tensor_desc->shape, tensor_desc->rank);
    const auto function = importer->impl->CreateTensorFromMemory;
    if (function == nullptr) return Lacks(*importer, "CreateTensorFromMemory");
    TENON_RETURN_IF_ERROR(CallImporter(
        [&] { return function(importer->impl, mem_handle, tensor_desc, out_tensor); }));
    if (*out_tensor == nullptr) return GaveNothing(*importer, "CreateTensorFromMemory");
    return OkStatus();
  });
}

OrtStatus* CanImportSemaphore(const OrtExternalResourceImporter* importer,
                              OrtExternalSemaphoreType type, bool* out_supported) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(importer);
    TENON_RETURN_IF_NULL(out_supported);
    *out_supported = false;
    const auto function = importer->impl->CanImportSemaphore;
    if (function == nullptr) return OkStatus();
    return CatchExceptions([&] {
      *out_supported = function(importer->impl, type);
      return OkStatus();
    });
  });
}

OrtStatus* ImportSemaphore(OrtExternalResourceImporter* importer,
                           const OrtExternalSemaphoreDescriptor* desc,
                           OrtExternalSemaphoreHandle** out_handle) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(importer);
    TENON_RETURN_IF_NULL(desc);
    TENON_RETURN_IF_NULL(out_handle);
    return Import(*importer, "ImportSemaphore", importer->impl->ImportSemaphore, *desc, out_handle);
  });
}

void ReleaseExternalSemaphoreHandle(OrtExternalSemaphoreHandle* input) noexcept { Release(input); }

OrtStatus* WaitSemaphore(OrtExternalResourceImporter* importer,
                         OrtExternalSemaphoreHandle* semaphore_handle, OrtSyncStream* stream,
                         uint64_t value) noexcept {
  return Order(importer, "WaitSemaphore", &OrtExternalResourceImporterImpl::WaitSemaphore,
               semaphore_handle, stream, value);
}

OrtStatus* SignalSemaphore(OrtExternalResourceImporter* importer,
                           OrtExternalSemaphoreHandle* semaphore_handle, OrtSyncStream* stream,
                           uint64_t value) noexcept {
  return Order(importer, "SignalSemaphore", &OrtExternalResourceImporterImpl::SignalSemaphore,
               semaphore_handle, stream, value);
}

}  // namespace tenon::capi
