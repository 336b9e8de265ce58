#include "allocator.h"

#include <algorithm>
#include <string>

namespace opencl {

DeviceAllocator::DeviceAllocator(const OrtMemoryInfo* memory_info, Device& memory_device)
    : OrtAllocator{}, info(memory_info), device(memory_device) {
  version = kAbiVersion;
  Alloc = [](OrtAllocator* self, size_t size) noexcept -> void* {
    auto* me = static_cast<DeviceAllocator*>(self);
    void* address = me->device.memory().Allocate(size);
    if (address) {
      ++me->allocations;
      ++me->blocks;
    }
    return address;
  };
  Free = [](OrtAllocator* self, void* address) noexcept {
    if (!address) return;
    auto* me = static_cast<DeviceAllocator*>(self);
    me->device.memory().Free(address);
    --me->blocks;
  };
  Info = [](const OrtAllocator* self) noexcept {
    return static_cast<const DeviceAllocator*>(self)->info;
  };
  GetStats = [](const OrtAllocator* self, OrtKeyValuePairs** out) noexcept -> OrtStatus* {
    return Guarded([&]() -> OrtStatus* {
      const auto* me = static_cast<const DeviceAllocator*>(self);
      ort->CreateKeyValuePairs(out);
      ort->AddKeyValuePair(*out, "NumAllocs", std::to_string(me->allocations).c_str());
      ort->AddKeyValuePair(*out, "NumBlocks", std::to_string(me->blocks).c_str());
      return nullptr;
    });
  };
}

PinnedAllocator::PinnedAllocator(const OrtMemoryInfo* memory_info, Device& memory_device,
                                 cl_command_queue queue)
    : OrtAllocator{}, info(memory_info), device(memory_device), queue_(queue) {
  version = kAbiVersion;
  Alloc = [](OrtAllocator* self, size_t size) noexcept {
    return static_cast<PinnedAllocator*>(self)->Allocate(size);
  };
  Free = [](OrtAllocator* self, void* address) noexcept {
    static_cast<PinnedAllocator*>(self)->Release(address);
  };
  Info = [](const OrtAllocator* self) noexcept {
    return static_cast<const PinnedAllocator*>(self)->info;
  };
}

Result<PinnedAllocator*> PinnedAllocator::Create(const OrtMemoryInfo* info, Device& device) {
  PLUGIN_ASSIGN_OR_RETURN(const cl_command_queue queue, device.CreateQueue());
  return new PinnedAllocator(info, device, queue);
}

PinnedAllocator::~PinnedAllocator() {
  Cl().clFinish(queue_);
  for (const auto& [address, buffer] : blocks_) Cl().clReleaseMemObject(buffer);
  Cl().clReleaseCommandQueue(queue_);
}

void* PinnedAllocator::Allocate(size_t size_bytes) {
  const size_t size = std::max<size_t>(size_bytes, 1);
  cl_int error = CL_SUCCESS;
  const cl_mem buffer = Cl().clCreateBuffer(
      device.context(), CL_MEM_READ_WRITE | CL_MEM_ALLOC_HOST_PTR, size, nullptr, &error);
  if (error != CL_SUCCESS) return nullptr;
  void* address = Cl().clEnqueueMapBuffer(queue_, buffer, CL_TRUE, CL_MAP_READ | CL_MAP_WRITE, 0,
                                          size, 0, nullptr, nullptr, &error);
  if (error != CL_SUCCESS) {
    Cl().clReleaseMemObject(buffer);
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  blocks_.emplace(address, buffer);
  return address;
}

void PinnedAllocator::Release(void* address) {
  const std::lock_guard lock(mutex_);
  const auto it = blocks_.find(address);
  if (it == blocks_.end()) return;
  Cl().clEnqueueUnmapMemObject(queue_, it->second, address, 0, nullptr, nullptr);
  Cl().clFinish(queue_);
  Cl().clReleaseMemObject(it->second);
  blocks_.erase(it);
}

}  // namespace opencl
