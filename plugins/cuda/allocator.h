// The allocators that the runtime sees.
#pragma once

#include <atomic>

#include "api.h"
#include "device.h"

namespace cuda {

// Device memory of the stream-ordered pool.
struct DeviceAllocator : OrtAllocator {
  DeviceAllocator(const OrtMemoryInfo* info, Device& device);

  const OrtMemoryInfo* info;  // the factory's
  Device& device;
  std::atomic<int64_t> allocations{0};
  std::atomic<int64_t> blocks{0};  // alive now
};

// Host memory that the driver has pinned, so that copies need no staging.
struct PinnedAllocator : OrtAllocator {
  PinnedAllocator(const OrtMemoryInfo* info, Device& device);

  const OrtMemoryInfo* info;  // the factory's
  Device& device;
};

}  // namespace cuda
