// CPU memory for objects that live as long as a session: weights, and the blocks of arenas.
#pragma once

#include <cstddef>
#include <memory>
#include <unordered_map>

#include "base/huge_pages.h"
#include "base/mutex.h"
#include "tensor/allocator.h"

namespace tenon {

// Places blocks of medium size side by side in huge pages, which a process fills in an eighth of
// the time that small pages take, or, with kIfQuick, in pages that take less. Large blocks have
// such pages of their own. Small blocks, and the first ones, which would not fill a huge page, come
// from the C library. The memory of other freed blocks goes back to the system at once; addresses
// of medium blocks are not reused while a neighbour lives. Thread-safe.
class LastingMemory final : public Allocator {
 public:
  explicit LastingMemory(HugePages huge_pages) : huge_pages_(huge_pages) {}
  // Every block must have been freed.
  ~LastingMemory() override = default;
  LastingMemory(const LastingMemory&) = delete;
  LastingMemory& operator=(const LastingMemory&) = delete;

  void* Allocate(size_t bytes) override;
  void Free(void* memory) override;
  const MemoryInfo& info() const override { return CpuMemory(); }
  // Of the blocks of medium size.
  AllocatorStats Stats() const override;

 private:
  struct Region;
  // Of medium or large size. Kept apart from the memory, which must not be touched before its owner
  // uses it.
  struct Block {
    Region* region;  // null: from the C library, or large
    size_t size;
  };

  void* AllocateLarge(size_t bytes);
  // Room for `size` bytes in the current region or in a new one; null if the system has none.
  std::byte* Take(size_t size);
  void FreeInRegion(Region& region, void* memory, size_t size);

  const HugePages huge_pages_;
  mutable Mutex mutex_;
  Region* current_ = nullptr;
  std::unordered_map<void*, Block> blocks_;
  AllocatorStats stats_;
};

// Those that all sessions use: for weights, and for the blocks of arenas, of which a first run has
// to wait for many. Both live as long as the process.
std::shared_ptr<Allocator> SharedLastingMemory();
std::shared_ptr<Allocator> SharedWorkMemory();

}  // namespace tenon
