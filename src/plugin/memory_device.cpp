// OrtMemoryDevice: a memory location without its name.
#include "capi/boundary/arguments.h"
#include "capi/boundary/handles.h"
#include "capi/boundary/slots.h"

namespace tenon::capi {

// These cannot report a null pointer.
const OrtMemoryDevice* MemoryInfo_GetMemoryDevice(const OrtMemoryInfo* memory_info) noexcept {
  return memory_info == nullptr ? nullptr : Wrap<OrtMemoryDevice>(Unwrap(memory_info));
}
const OrtMemoryDevice* Value_GetMemoryDevice(const OrtValue* value) noexcept {
  if (value == nullptr || !Unwrap(value)->is_tensor()) return nullptr;
  return Wrap<OrtMemoryDevice>(&Unwrap(value)->tensor().memory());
}
bool MemoryDevice_AreEqual(const OrtMemoryDevice* a, const OrtMemoryDevice* b) noexcept {
  if (a == nullptr || b == nullptr) return a == b;
  return Unwrap(a)->SameDevice(*Unwrap(b));
}
OrtMemoryInfoDeviceType MemoryDevice_GetDeviceType(const OrtMemoryDevice* memory_device) noexcept {
  if (memory_device == nullptr) return OrtMemoryInfoDeviceType_CPU;
  return static_cast<OrtMemoryInfoDeviceType>(Unwrap(memory_device)->device_type);
}
OrtDeviceMemoryType MemoryDevice_GetMemoryType(const OrtMemoryDevice* memory_device) noexcept {
  if (memory_device == nullptr) return OrtDeviceMemoryType_DEFAULT;
  return static_cast<OrtDeviceMemoryType>(Unwrap(memory_device)->memory_type);
}
uint32_t MemoryDevice_GetVendorId(const OrtMemoryDevice* memory_device) noexcept {
  return memory_device == nullptr ? 0 : Unwrap(memory_device)->vendor_id;
}
uint32_t MemoryDevice_GetDeviceId(const OrtMemoryDevice* memory_device) noexcept {
  return memory_device == nullptr ? 0 : static_cast<uint32_t>(Unwrap(memory_device)->device_id);
}

}  // namespace tenon::capi
