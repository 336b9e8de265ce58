// The host's functions with which plugins describe devices.
#include "capi/env/ep_device.h"

#include <cctype>
#include <memory>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "plugin/call.h"
#include "plugin/semantic_version.h"

namespace tenon::capi {
namespace {

constexpr uint32_t kFirstWithVersion = 23;
constexpr int32_t kReadOnlyAllocator = 2;

}  // namespace

OrtStatus* CreateEpDevice(OrtEpFactory* ep_factory, const OrtHardwareDevice* hardware_device,
                          const OrtKeyValuePairs* ep_metadata, const OrtKeyValuePairs* ep_options,
                          OrtEpDevice** ep_device) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_factory);
    TENON_RETURN_IF_NULL(hardware_device);
    TENON_RETURN_IF_NULL(ep_device);
    const OrtEpFactory table = plugin::Supported(*ep_factory);
    auto device = std::make_unique<OrtEpDevice>();
    const char* const name = table.GetName != nullptr ? table.GetName(ep_factory) : nullptr;
    const char* const vendor = table.GetVendor != nullptr ? table.GetVendor(ep_factory) : nullptr;
    if (name == nullptr) return InvalidArgument("the factory has no name");
    device->ep_name = name;
    if (vendor != nullptr) device->ep_vendor = vendor;
    device->device = hardware_device;
    if (ep_metadata != nullptr) {
      for (const auto& [key, value] : ep_metadata->entries()) device->ep_metadata.Set(key, value);
    }
    if (ep_options != nullptr) {
      for (const auto& [key, value] : ep_options->entries()) device->ep_options.Set(key, value);
    }
    if (device->ep_metadata.entries().contains("version")) {
      return InvalidArgument("{}: the metadata must not have 'version', which GetVersion tells",
                             device->ep_name);
    }
    if (table.ort_version_supported >= kFirstWithVersion && table.GetVersion != nullptr) {
      const char* const given = table.GetVersion(ep_factory);
      const std::string version = given != nullptr ? given : "";
      if (!plugin::IsSemanticVersion(version)) {
        return InvalidArgument("{}: '{}' is no version as Semantic Versioning 2.0 has them",
                               device->ep_name, version);
      }
      device->ep_metadata.Set("version", version);
    }
    *ep_device = device.release();
    return OkStatus();
  });
}

void ReleaseEpDevice(OrtEpDevice* input) noexcept { delete input; }

OrtStatus* EpDevice_AddAllocatorInfo(OrtEpDevice* ep_device,
                                     const OrtMemoryInfo* allocator_memory_info) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_device);
    TENON_RETURN_IF_NULL(allocator_memory_info);
    const MemoryInfo& memory = InternMemoryInfo(*Unwrap(allocator_memory_info));
    if (memory.allocator_type == kReadOnlyAllocator) {
      if (memory.memory_type != MemoryType::kDefault) {
        return InvalidArgument("read-only memory '{}' must be of type DEFAULT", memory.name);
      }
      ep_device->read_only_memory = &memory;
    } else if (memory.memory_type == MemoryType::kDefault) {
      ep_device->memory = &memory;
    } else if (memory.memory_type == MemoryType::kHostAccessible) {
      ep_device->host_accessible_memory = &memory;
    } else {
      return InvalidArgument(
          "memory '{}' is of type {}, which is neither DEFAULT nor "
          "HOST_ACCESSIBLE",
          memory.name, static_cast<int>(memory.memory_type));
    }
    return OkStatus();
  });
}

OrtStatus* CreateHardwareDevice(OrtHardwareDeviceType type, uint32_t vendor_id, uint32_t device_id,
                                const char* vendor_name, const OrtKeyValuePairs* metadata,
                                OrtHardwareDevice** hardware_device) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(hardware_device);
    const int number = type;
    if (number < OrtHardwareDeviceType_CPU || number > OrtHardwareDeviceType_NPU) {
      return InvalidArgument("there is no type {} of hardware devices", number);
    }
    auto device = std::make_unique<OrtHardwareDevice>();
    device->type = type;
    device->vendor_id = vendor_id;
    device->device_id = device_id;
    if (vendor_name != nullptr) device->vendor = vendor_name;
    if (metadata != nullptr) {
      for (const auto& [key, value] : metadata->entries()) device->metadata.Set(key, value);
    }
    *hardware_device = device.release();
    return OkStatus();
  });
}

void ReleaseHardwareDevice(OrtHardwareDevice* input) noexcept { delete input; }

OrtStatus* DeviceEpIncompatibilityDetails_SetDetails(OrtDeviceEpIncompatibilityDetails* details,
                                                     uint32_t reasons_bitmask, int32_t error_code,
                                                     const char* notes) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(details);
    details->reasons = reasons_bitmask;
    details->error_code = error_code;
    details->notes = notes == nullptr ? "" : notes;
    return OkStatus();
  });
}

}  // namespace tenon::capi
