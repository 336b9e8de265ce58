#include "capi/session/lora.h"

#include <string>
#include <utility>

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/options/run_options.h"
#include "capi/value/tensor_arguments.h"

namespace tenon::capi {
namespace {

// Moves the parameters into memory of the client's allocator, if there is one.
Status MakeAdapter(LoraAdapter adapter, OrtAllocator* allocator, OrtLoraAdapter** out) {
  if (allocator != nullptr) {
    for (LoraParameter& parameter : adapter.parameters) {
      TENON_ASSIGN_OR_RETURN(parameter.tensor, CopyTensor(parameter.tensor, allocator));
    }
  }
  *out = new OrtLoraAdapter{std::move(adapter)};
  return OkStatus();
}

}  // namespace

OrtStatus* CreateLoraAdapter(const ORTCHAR_T* adapter_file_path, OrtAllocator* allocator,
                             OrtLoraAdapter** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(adapter_file_path);
    TENON_RETURN_IF_NULL(out);
    TENON_ASSIGN_OR_RETURN(LoraAdapter adapter, ReadLoraAdapter(std::string(adapter_file_path)));
    return MakeAdapter(std::move(adapter), allocator, out);
  });
}

OrtStatus* CreateLoraAdapterFromArray(const void* bytes, size_t num_bytes, OrtAllocator* allocator,
                                      OrtLoraAdapter** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(bytes);
    TENON_RETURN_IF_NULL(out);
    const std::span view(static_cast<const std::byte*>(bytes), num_bytes);
    TENON_ASSIGN_OR_RETURN(LoraAdapter adapter, ReadLoraAdapter(view, nullptr));
    return MakeAdapter(std::move(adapter), allocator, out);
  });
}

void ReleaseLoraAdapter(OrtLoraAdapter* input) noexcept { delete input; }

OrtStatus* RunOptionsAddActiveLoraAdapter(OrtRunOptions* options,
                                          const OrtLoraAdapter* adapter) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(options);
    TENON_RETURN_IF_NULL(adapter);
    options->adapters.push_back(adapter);
    return OkStatus();
  });
}

}  // namespace tenon::capi
