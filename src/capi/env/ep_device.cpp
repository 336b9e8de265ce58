#include "capi/env/ep_device.h"

#include <memory>

namespace tenon::capi {

const OrtEpDevice& CpuEpDevice() {
  static const OrtEpDevice* const device = [] {
    auto cpu = std::make_unique<OrtEpDevice>();
    cpu->ep_name = "CPUExecutionProvider";
    cpu->ep_vendor = "Tenon";
    cpu->ep_metadata.Set("version", TENON_VERSION);
    cpu->device = &CpuHardware();
    cpu->memory = &CpuMemory();
    return cpu.release();
  }();
  return *device;
}

std::string EpOptionPrefix(std::string_view ep_name) {
  std::string prefix = "ep.";
  for (const char c : ep_name) prefix += c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
  return prefix + ".";
}

const MemoryInfo* MemoryOf(const OrtEpDevice& device, int memory_type) {
  if (memory_type == OrtDeviceMemoryType_DEFAULT) return device.memory;
  return memory_type == OrtDeviceMemoryType_HOST_ACCESSIBLE ? device.host_accessible_memory
                                                            : nullptr;
}

}  // namespace tenon::capi
