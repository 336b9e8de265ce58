// The one interface through which tensors get memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/status.h"
#include "tensor/memory_info.h"

namespace tenon {

// Counters of an allocator; zero if it does not count.
struct AllocatorStats {
  uint64_t allocations = 0;
  uint64_t bytes_in_use = 0;
  uint64_t bytes_requested = 0;  // of those in use, without what blocks were rounded up by
  uint64_t peak_bytes_in_use = 0;
  uint64_t bytes_reserved = 0;  // taken from the layer below, in use or cached
  uint64_t bytes_limit = 0;     // 0: none
};

// Allocates and frees blocks of one memory. All calls are thread-safe.
class Allocator {
 public:
  virtual ~Allocator() = default;
  // At least `bytes` bytes aligned to kAlignment, or null if there is no such memory. Zero bytes
  // give a pointer that must be freed like any other.
  virtual void* Allocate(size_t bytes) = 0;
  // Frees what Allocate returned; null is ignored.
  virtual void Free(void* block) = 0;
  virtual const MemoryInfo& info() const = 0;
  virtual AllocatorStats Stats() const { return {}; }
  // Whether it caches blocks that Shrink can return.
  virtual bool CanShrink() const { return false; }
  // Returns cached blocks to the layer below. Errors: those of that layer; none without CanShrink.
  virtual Status Shrink() { return OkStatus(); }

  static constexpr size_t kAlignment = 64;
};

// CPU memory from the C library. Lives as long as the process.
Allocator& CpuAllocator();
// The same, for owners that share their allocator.
std::shared_ptr<Allocator> SharedCpuAllocator();

}  // namespace tenon
