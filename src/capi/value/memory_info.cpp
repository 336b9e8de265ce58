// OrtMemoryInfo: memory locations and their names.
#include <algorithm>
#include <string_view>

#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {
namespace {

// The devices that CreateMemoryInfo knows by the names of their memory.
struct NamedMemory {
  std::string_view name;
  DeviceType device;
  MemoryType memory;
  uint32_t vendor_id;  // the PCI vendor
};
constexpr uint32_t kAmd = 0x1002, kHuawei = 0x19E5, kIntel = 0x8086, kMicrosoft = 0x1414,
                   kNvidia = 0x10DE, kQualcomm = 0x5143;
constexpr NamedMemory kNamedMemories[] = {
    {"Cpu", DeviceType::kCpu, MemoryType::kDefault, 0},
    {"Cuda", DeviceType::kGpu, MemoryType::kDefault, kNvidia},
    {"CudaPinned", DeviceType::kGpu, MemoryType::kHostAccessible, kNvidia},
    {"Cann", DeviceType::kNpu, MemoryType::kDefault, kHuawei},
    {"CannPinned", DeviceType::kNpu, MemoryType::kHostAccessible, kHuawei},
    {"DML", DeviceType::kGpu, MemoryType::kDefault, kMicrosoft},
    {"Hip", DeviceType::kGpu, MemoryType::kDefault, kAmd},
    {"HipPinned", DeviceType::kGpu, MemoryType::kHostAccessible, kAmd},
    {"OpenVINO_CPU", DeviceType::kCpu, MemoryType::kDefault, 0},
    {"OpenVINO_GPU", DeviceType::kGpu, MemoryType::kDefault, kIntel},
    {"OpenVINO_RT_NPU", DeviceType::kNpu, MemoryType::kDefault, kIntel},
    {"QnnHtpShared", DeviceType::kCpu, MemoryType::kHostAccessible, kQualcomm},
    {"WebGPU_Buf", DeviceType::kGpu, MemoryType::kDefault, 0},
    {"WebNN_Ten", DeviceType::kGpu, MemoryType::kDefault, 0},
};

// Names that memory had before 1.25 are still accepted.
std::string_view NewestName(std::string_view name) {
  if (name == "WebGPU_Buffer") return "WebGPU_Buf";
  return name == "WebNN_Tensor" ? "WebNN_Ten" : name;
}

OrtMemoryInfo* HandleOf(const MemoryInfo& info) {
  // Interned infos never change: no function of the ABI writes through the handle.
  return const_cast<OrtMemoryInfo*>(Wrap<OrtMemoryInfo>(&InternMemoryInfo(info)));
}

}  // namespace

OrtStatus* CreateMemoryInfo(const char* name, OrtAllocatorType type, int id, OrtMemType mem_type,
                            OrtMemoryInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(out);
    const auto* const known =
        std::find_if(std::begin(kNamedMemories), std::end(kNamedMemories),
                     [&](const NamedMemory& memory) { return memory.name == NewestName(name); });
    if (known == std::end(kNamedMemories)) {
      return InvalidArgument("there is no memory named '{}'; CreateMemoryInfo_V2 can describe it",
                             name);
    }
    MemoryInfo info;
    info.name = known->name;
    info.device_type = known->device;
    info.memory_type = known->memory;
    info.vendor_id = known->vendor_id;
    // The CPU is one device, whatever its number.
    info.device_id = known->device == DeviceType::kCpu ? 0 : id;
    info.allocator_type = type;
    info.mem_type = mem_type;
    *out = HandleOf(info);
    return OkStatus();
  });
}

OrtStatus* CreateMemoryInfo_V2(const char* name, OrtMemoryInfoDeviceType device_type,
                               uint32_t vendor_id, int32_t device_id, OrtDeviceMemoryType mem_type,
                               size_t alignment, OrtAllocatorType allocator_type,
                               OrtMemoryInfo** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(name);
    TENON_RETURN_IF_NULL(out);
    const int device = device_type, memory = mem_type;
    if (device < OrtMemoryInfoDeviceType_CPU || device > OrtMemoryInfoDeviceType_NPU) {
      return InvalidArgument("there is no device type {}", device);
    }
    if (memory != OrtDeviceMemoryType_DEFAULT && memory != OrtDeviceMemoryType_HOST_ACCESSIBLE) {
      return InvalidArgument("there is no memory type {}", memory);
    }
    MemoryInfo info;
    info.name = name;
    info.device_type = static_cast<DeviceType>(device);
    info.memory_type = static_cast<MemoryType>(memory);
    info.vendor_id = vendor_id;
    info.device_id = device_id;
    info.allocator_type = allocator_type;
    info.alignment = alignment;
    *out = HandleOf(info);
    return OkStatus();
  });
}

OrtStatus* CreateCpuMemoryInfo(OrtAllocatorType type, OrtMemType mem_type,
                               OrtMemoryInfo** out) noexcept {
  return CreateMemoryInfo("Cpu", type, 0, mem_type, out);
}

void ReleaseMemoryInfo(OrtMemoryInfo*) noexcept {}  // interned

OrtStatus* CompareMemoryInfo(const OrtMemoryInfo* info1, const OrtMemoryInfo* info2,
                             int* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(info1);
    TENON_RETURN_IF_NULL(info2);
    TENON_RETURN_IF_NULL(out);
    *out = *Unwrap(info1) == *Unwrap(info2) ? 0 : -1;
    return OkStatus();
  });
}

OrtStatus* MemoryInfoGetName(const OrtMemoryInfo* ptr, const char** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ptr);
    TENON_RETURN_IF_NULL(out);
    *out = Unwrap(ptr)->name.c_str();
    return OkStatus();
  });
}

OrtStatus* MemoryInfoGetId(const OrtMemoryInfo* ptr, int* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ptr);
    TENON_RETURN_IF_NULL(out);
    *out = Unwrap(ptr)->device_id;
    return OkStatus();
  });
}

OrtStatus* MemoryInfoGetMemType(const OrtMemoryInfo* ptr, OrtMemType* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ptr);
    TENON_RETURN_IF_NULL(out);
    *out = static_cast<OrtMemType>(Unwrap(ptr)->mem_type);
    return OkStatus();
  });
}

OrtStatus* MemoryInfoGetType(const OrtMemoryInfo* ptr, OrtAllocatorType* out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ptr);
    TENON_RETURN_IF_NULL(out);
    *out = static_cast<OrtAllocatorType>(Unwrap(ptr)->allocator_type);
    return OkStatus();
  });
}

void MemoryInfoGetDeviceType(const OrtMemoryInfo* ptr, OrtMemoryInfoDeviceType* out) noexcept {
  *out = static_cast<OrtMemoryInfoDeviceType>(Unwrap(ptr)->device_type);
}

OrtDeviceMemoryType MemoryInfoGetDeviceMemType(const OrtMemoryInfo* ptr) noexcept {
  return static_cast<OrtDeviceMemoryType>(Unwrap(ptr)->memory_type);
}

uint32_t MemoryInfoGetVendorId(const OrtMemoryInfo* ptr) noexcept { return Unwrap(ptr)->vendor_id; }

}  // namespace tenon::capi
