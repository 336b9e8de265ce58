// Memory locations.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon {

// Numbers of OrtMemoryInfoDeviceType.
enum class DeviceType : int8_t { kCpu = 0, kGpu = 1, kFpga = 2, kNpu = 3 };
// Numbers of OrtDeviceMemoryType.
enum class MemoryType : int8_t { kDefault = 0, kHostAccessible = 5 };

// A memory of a device. Two infos with equal device fields are interchangeable. The name says who
// made it and is ignored by SameDevice.
struct MemoryInfo {
  std::string name = "Cpu";
  DeviceType device_type = DeviceType::kCpu;
  MemoryType memory_type = MemoryType::kDefault;
  uint32_t vendor_id = 0;
  int32_t device_id = 0;
  // OrtAllocatorType: 0 device, 1 arena, 2 read-only.
  int32_t allocator_type = 0;
  // OrtMemType: -2 CPU input, -1 CPU output, 0 default.
  int32_t mem_type = 0;
  size_t alignment = 0;  // 0: the device's own

  bool SameDevice(const MemoryInfo& other) const {
    return device_type == other.device_type && memory_type == other.memory_type &&
           vendor_id == other.vendor_id && device_id == other.device_id;
  }
  bool operator==(const MemoryInfo&) const = default;
  // Whether the CPU can read and write through a pointer.
  bool IsHostAccessible() const {
    return device_type == DeviceType::kCpu || memory_type == MemoryType::kHostAccessible;
  }
};

// The CPU's default memory. Lives as long as the process.
const MemoryInfo& CpuMemory();

// The one info of the process that equals `info` in every field. Lives as long as the process, so
// that tensors can point to it. Thread-safe.
const MemoryInfo& InternMemoryInfo(const MemoryInfo& info);

}  // namespace tenon
