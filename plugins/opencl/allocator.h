// The allocators that the runtime sees.
#pragma once

#include <atomic>
#include <mutex>
#include <unordered_map>

#include "api.h"
#include "device.h"

namespace opencl {

// Device memory, under the addresses of the device's AddressSpace.
struct DeviceAllocator : OrtAllocator {
  DeviceAllocator(const OrtMemoryInfo* info, Device& device);

  const OrtMemoryInfo* info;  // the factory's
  Device& device;
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> blocks{0};  // alive now
};

// Host memory that the driver has pinned, so that copies need no staging.
struct PinnedAllocator : OrtAllocator {
  static Result<PinnedAllocator*> Create(const OrtMemoryInfo* info, Device& device);
  ~PinnedAllocator();

  void* Allocate(size_t size_bytes);
  void Release(void* address);

  const OrtMemoryInfo* info;  // the factory's
  Device& device;

 private:
  PinnedAllocator(const OrtMemoryInfo* info, Device& device, cl_command_queue queue);

  cl_command_queue queue_;  // maps and unmaps
  std::mutex mutex_;
  std::unordered_map<void*, cl_mem> blocks_;
};

}  // namespace opencl
