#include "tensor/lasting_memory.h"

#include <algorithm>
#include <new>

#include "base/huge_pages.h"

namespace tenon {
namespace {

// Smaller blocks cost few page faults.
constexpr size_t kLeastMedium = size_t{32} << 10;
constexpr size_t kMostMedium = size_t{8} << 20;
constexpr size_t kRegionBytes = size_t{32} << 20;
// From so much on another huge page no longer multiplies what a process uses.
constexpr size_t kEnoughForHugePages = kHugePageBytes / 2;

bool IsMedium(size_t size) { return size >= kLeastMedium && size <= kMostMedium; }

}  // namespace

// A run of huge pages, filled from the front.
struct LastingMemory::Region {
  std::byte* memory;
  size_t filled = 0;
  size_t live_blocks = 0;
};

// Stands before the caller's memory.
struct alignas(Allocator::kAlignment) LastingMemory::Block {
  Region* region;  // null: from the C library
  size_t size;     // with this
};

LastingMemory::Block* LastingMemory::Take(size_t size) {
  if (current_ == nullptr || kRegionBytes - current_->filled < size) {
    void* const memory = ReserveHugePages(kRegionBytes);
    if (memory == nullptr) return nullptr;
    // The region before lives on in its blocks.
    current_ = new Region{static_cast<std::byte*>(memory)};
    stats_.bytes_reserved += kRegionBytes;
  }
  Region& region = *current_;
  auto* const block = new (region.memory + region.filled) Block{&region, size};
  region.filled += size;
  ++region.live_blocks;
  return block;
}

void* LastingMemory::Allocate(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  const size_t size = (bytes + sizeof(Block) + kAlignment - 1) / kAlignment * kAlignment;
  Block* block = nullptr;
  const bool is_medium = IsMedium(size);
  if (is_medium) {
    const MutexLock lock(mutex_);
    if (stats_.bytes_in_use >= kEnoughForHugePages) block = Take(size);
    stats_.bytes_in_use += size;
    ++stats_.allocations;
    stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  }
  if (block == nullptr) {
    void* const memory = CpuAllocator().Allocate(size);
    if (memory != nullptr) block = new (memory) Block{nullptr, size};
  }
  if (block != nullptr) return block + 1;
  if (is_medium) {
    const MutexLock lock(mutex_);
    stats_.bytes_in_use -= size;
  }
  return nullptr;
}

void LastingMemory::Free(void* memory) {
  if (memory == nullptr) return;
  Block* const block = static_cast<Block*>(memory) - 1;
  Region* const region = block->region;
  const size_t size = block->size;
  if (region == nullptr) CpuAllocator().Free(block);
  if (!IsMedium(size)) return;
  const MutexLock lock(mutex_);
  stats_.bytes_in_use -= size;
  if (region == nullptr) return;
  if (--region->live_blocks > 0) {
    ReleaseReserved(block, size);
    return;
  }
  if (region == current_) current_ = nullptr;
  ReturnHugePages(region->memory, kRegionBytes);
  stats_.bytes_reserved -= kRegionBytes;
  delete region;
}

AllocatorStats LastingMemory::Stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

std::shared_ptr<Allocator> SharedLastingMemory() {
  // Never destroyed: tensors may outlive every other object of the library.
  static const auto* const allocator =
      new std::shared_ptr<Allocator>(std::make_shared<LastingMemory>());
  return *allocator;
}

}  // namespace tenon
