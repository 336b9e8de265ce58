// The memories that values of a plan lie in.
#pragma once

#include <memory>

#include "tensor/allocator.h"
#include "tensor/memory_info.h"

namespace tenon {

class ExecutionProvider;

// A memory that values of a plan live in. Location 0 is the CPU's.
struct Location {
  const MemoryInfo* memory = &CpuMemory();
  std::shared_ptr<Allocator> allocator;
  std::shared_ptr<Allocator> constant_allocator;

  // Offsets of values in a slab are multiples of this. Devices bind buffers at such offsets.
  size_t SlabAlignment() const {
    return memory->device_type == DeviceType::kCpu ? Allocator::kAlignment : 256;
  }
};

// The memory that a provider works in.
Location MemoryOf(ExecutionProvider& provider);

}  // namespace tenon
