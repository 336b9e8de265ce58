// Slots of features that this build lacks. They return an error that says so.
#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {
namespace {

Status NoGpu() {
  return Fail("there is no GPU execution provider, which alone has a current device");
}

}  // namespace

OrtStatus* SetCurrentGpuDeviceId(int) noexcept {
  return AtBoundary([] { return NoGpu(); });
}

OrtStatus* GetCurrentGpuDeviceId(int* device_id) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(device_id);
    return NoGpu();
  });
}

OrtStatus* GetExecutionProviderApi(const char* provider_name, uint32_t,
                                   const void** provider_api) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(provider_name);
    TENON_RETURN_IF_NULL(provider_api);
    *provider_api = nullptr;
    return InvalidArgument("execution provider '{}' has no functions of its own", provider_name);
  });
}

}  // namespace tenon::capi
