// OrtEpDevice and OrtHardwareDevice: devices, and what providers make of them.
#pragma once

#include <onnxruntime_c_api.h>

#include <string>

#include "capi/key_value_pairs.h"
#include "tensor/memory_info.h"

struct OrtHardwareDevice {
  OrtHardwareDeviceType type = OrtHardwareDeviceType_CPU;
  uint32_t vendor_id = 0;  // the PCI vendor
  std::string vendor;
  uint32_t device_id = 0;
  OrtKeyValuePairs metadata;
};

struct OrtEpDevice {
  std::string ep_name;
  std::string ep_vendor;
  OrtKeyValuePairs ep_metadata;
  OrtKeyValuePairs ep_options;
  const OrtHardwareDevice* device = nullptr;
  const tenon::MemoryInfo* memory = nullptr;
};

namespace tenon::capi {

// The CPU of this machine and the built-in provider on it. Live as long as the process.
const OrtHardwareDevice& CpuHardware();
const OrtEpDevice& CpuEpDevice();

// The device's memory of an OrtDeviceMemoryType, null if it has none.
const MemoryInfo* MemoryOf(const OrtEpDevice& device, int memory_type);

}  // namespace tenon::capi
