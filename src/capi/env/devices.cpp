// The devices of this machine and the providers for them, for clients.
#include <algorithm>
#include <memory>
#include <tuple>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "capi/env/env.h"
#include "capi/env/ep_device.h"
#include "capi/env/ep_source.h"

namespace tenon::capi {
namespace {

// Never null, for clients that print it without a check.
const OrtKeyValuePairs& NoPairs() {
  static const auto* const none = new OrtKeyValuePairs();
  return *none;
}

}  // namespace

OrtStatus* GetEpDevices(const OrtEnv* env, const OrtEpDevice* const** ep_devices,
                        size_t* num_ep_devices) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(ep_devices);
    TENON_RETURN_IF_NULL(num_ep_devices);
    std::tie(*ep_devices, *num_ep_devices) = env->shared->eps.Devices();
    return OkStatus();
  });
}

OrtStatus* GetNumHardwareDevices(const OrtEnv* env, size_t* num_devices) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(num_devices);
    *num_devices = Hardware().size();
    return OkStatus();
  });
}

OrtStatus* GetHardwareDevices(const OrtEnv* env, const OrtHardwareDevice** devices,
                              size_t num_devices) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(devices);
    const auto all = Hardware();
    if (num_devices != all.size()) {
      return InvalidArgument("there are {} devices, got room for {}", all.size(), num_devices);
    }
    std::copy(all.begin(), all.end(), devices);
    return OkStatus();
  });
}

// These cannot report a null pointer.
OrtHardwareDeviceType HardwareDevice_Type(const OrtHardwareDevice* device) noexcept {
  return device == nullptr ? OrtHardwareDeviceType_CPU : device->type;
}
uint32_t HardwareDevice_VendorId(const OrtHardwareDevice* device) noexcept {
  return device == nullptr ? 0 : device->vendor_id;
}
const char* HardwareDevice_Vendor(const OrtHardwareDevice* device) noexcept {
  return device == nullptr ? "" : device->vendor.c_str();
}
uint32_t HardwareDevice_DeviceId(const OrtHardwareDevice* device) noexcept {
  return device == nullptr ? 0 : device->device_id;
}
const OrtKeyValuePairs* HardwareDevice_Metadata(const OrtHardwareDevice* device) noexcept {
  return device == nullptr ? &NoPairs() : &device->metadata;
}
const char* EpDevice_EpName(const OrtEpDevice* ep_device) noexcept {
  return ep_device == nullptr ? "" : ep_device->ep_name.c_str();
}
const char* EpDevice_EpVendor(const OrtEpDevice* ep_device) noexcept {
  return ep_device == nullptr ? "" : ep_device->ep_vendor.c_str();
}
const OrtKeyValuePairs* EpDevice_EpMetadata(const OrtEpDevice* ep_device) noexcept {
  return ep_device == nullptr ? &NoPairs() : &ep_device->ep_metadata;
}
const OrtKeyValuePairs* EpDevice_EpOptions(const OrtEpDevice* ep_device) noexcept {
  return ep_device == nullptr ? &NoPairs() : &ep_device->ep_options;
}
const OrtHardwareDevice* EpDevice_Device(const OrtEpDevice* ep_device) noexcept {
  return ep_device == nullptr ? nullptr : ep_device->device;
}
const OrtMemoryInfo* EpDevice_MemoryInfo(const OrtEpDevice* ep_device,
                                         OrtDeviceMemoryType memory_type) noexcept {
  if (ep_device == nullptr) return nullptr;
  const MemoryInfo* const memory = MemoryOf(*ep_device, memory_type);
  return memory == nullptr ? nullptr : Wrap<OrtMemoryInfo>(memory);
}

OrtStatus* GetHardwareDeviceEpIncompatibilityDetails(
    const OrtEnv* env, const char* ep_name, const OrtHardwareDevice* hw,
    OrtDeviceEpIncompatibilityDetails** details) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(env);
    TENON_RETURN_IF_NULL(ep_name);
    TENON_RETURN_IF_NULL(hw);
    TENON_RETURN_IF_NULL(details);
    auto result = std::make_unique<OrtDeviceEpIncompatibilityDetails>();
    if (ep_name != CpuEpDevice().ep_name) {
      TENON_ASSIGN_OR_RETURN(const auto source, env->shared->eps.FindSource(ep_name));
      TENON_RETURN_IF_ERROR(source->Explain(*hw, *result));
    } else if (hw->type != OrtHardwareDeviceType_CPU) {
      result->reasons = OrtDeviceEpIncompatibility_DEVICE_INCOMPATIBLE;
      result->notes = "the provider runs on CPUs";
    }
    *details = result.release();
    return OkStatus();
  });
}

OrtStatus* DeviceEpIncompatibilityDetails_GetReasonsBitmask(
    const OrtDeviceEpIncompatibilityDetails* details, uint32_t* reasons_bitmask) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(details);
    TENON_RETURN_IF_NULL(reasons_bitmask);
    *reasons_bitmask = details->reasons;
    return OkStatus();
  });
}

OrtStatus* DeviceEpIncompatibilityDetails_GetNotes(const OrtDeviceEpIncompatibilityDetails* details,
                                                   const char** notes) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(details);
    TENON_RETURN_IF_NULL(notes);
    *notes = details->notes.empty() ? nullptr : details->notes.c_str();
    return OkStatus();
  });
}

OrtStatus* DeviceEpIncompatibilityDetails_GetErrorCode(
    const OrtDeviceEpIncompatibilityDetails* details, int32_t* error_code) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(details);
    TENON_RETURN_IF_NULL(error_code);
    *error_code = details->error_code;
    return OkStatus();
  });
}

void ReleaseDeviceEpIncompatibilityDetails(OrtDeviceEpIncompatibilityDetails* input) noexcept {
  delete input;
}

}  // namespace tenon::capi
