// An allocator that keeps freed blocks for the next request of their size.
#pragma once

#include <memory>
#include <vector>

#include "base/mutex.h"
#include "tensor/allocator.h"

namespace tenon {

// Serves requests from lists of freed blocks, one per size class (four classes per power of two, so
// a block wastes at most a fifth). If a list is empty, large requests take blocks of up to four
// times the size, and then memory from `base`. A steady pattern of requests no longer uses `base`.
// Shrink() gives every cached block back. Thread-safe.
class CachingArena final : public Allocator {
 public:
  // limit_bytes  most bytes to hold from `base` at once, 0 for no limit; beyond it cached blocks
  // are
  //              given back first, then Allocate fails
  explicit CachingArena(std::shared_ptr<Allocator> base, size_t limit_bytes = 0);
  // Every block must have been freed.
  ~CachingArena() override;

  void* Allocate(size_t bytes) override;
  void Free(void* block) override;
  const MemoryInfo& info() const override { return base_->info(); }
  AllocatorStats Stats() const override;
  bool CanShrink() const override { return true; }
  Status Shrink() override;

 private:
  static constexpr size_t kClasses = 256;
  struct Block;

  // A freed block of the class, or of a greater one; null if there is none.
  Block* TakeFree(size_t size_class);
  void ShrinkLocked();

  const std::shared_ptr<Allocator> base_;
  const size_t limit_bytes_;
  mutable Mutex mutex_;
  Block* free_[kClasses] = {};
  AllocatorStats stats_;
};

}  // namespace tenon
