// OrtEpDevice: what a provider makes of a device.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <memory>
#include <string>
#include <string_view>

#include "capi/boundary/key_value_pairs.h"
#include "capi/env/hardware.h"
#include "tensor/memory_info.h"

namespace tenon::capi {
class EpSource;
}  // namespace tenon::capi

struct OrtEpDevice {
  std::string ep_name;
  std::string ep_vendor;
  OrtKeyValuePairs ep_metadata;
  OrtKeyValuePairs ep_options;
  const OrtHardwareDevice* device = nullptr;
  // Null if it has none. Constants go into the read-only memory if there is one.
  const tenon::MemoryInfo* memory = nullptr;
  const tenon::MemoryInfo* host_accessible_memory = nullptr;
  const tenon::MemoryInfo* read_only_memory = nullptr;
  // For plugins; set when the pair is registered.
  std::shared_ptr<tenon::capi::EpSource> source;
};

// Why a provider cannot use a device.
struct OrtDeviceEpIncompatibilityDetails {
  uint32_t reasons = OrtDeviceEpIncompatibility_NONE;
  int32_t error_code = 0;
  std::string notes;
};

namespace tenon::capi {

// The built-in provider on the CPU of this machine. Lives as long as the process.
const OrtEpDevice& CpuEpDevice();

// The prefix of session config entries for a provider's options: "ep.<name in lower case>.".
std::string EpOptionPrefix(std::string_view ep_name);

// The device's memory of an OrtDeviceMemoryType, null if it has none.
const MemoryInfo* MemoryOf(const OrtEpDevice& device, int memory_type);

}  // namespace tenon::capi
