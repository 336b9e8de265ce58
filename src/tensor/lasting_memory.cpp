#include "tensor/lasting_memory.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "base/arithmetic.h"
#include "tensor/system_memory.h"

namespace tenon {
namespace {

// Smaller blocks cost few page faults.
constexpr size_t kLeastMedium = size_t{32} << 10;
constexpr size_t kMostMedium = size_t{8} << 20;
constexpr size_t kRegionBytes = size_t{32} << 20;
constexpr size_t kPageBytes = size_t{64} << 10;  // a multiple of the system's
// From this size on, another huge page no longer multiplies the memory that a process uses.
constexpr size_t kEnoughForHugePages = kHugePageBytes / 2;

}  // namespace

// A run of huge pages, filled from the front.
struct LastingMemory::Region {
  std::byte* memory;
  size_t filled = 0;
  size_t live_blocks = 0;
  bool stays_small = false;  // gets no more huge pages
};

std::byte* LastingMemory::Take(size_t size) {
  if (current_ == nullptr || kRegionBytes - current_->filled < size) {
    void* const memory = ReserveHugePages(kRegionBytes, huge_pages_);
    if (memory == nullptr) return nullptr;
    // The previous region lives on in its blocks.
    current_ = new Region{static_cast<std::byte*>(memory)};
    stats_.bytes_reserved += kRegionBytes;
  }
  std::byte* const taken = current_->memory + current_->filled;
  current_->filled += size;
  ++current_->live_blocks;
  return taken;
}

void* LastingMemory::Allocate(size_t bytes) {
  if (bytes > kMostMedium) return AllocateLarge(bytes);
  if (bytes < kLeastMedium) return AllocateSystemMemory(bytes, huge_pages_);
  const size_t size = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  const MutexLock lock(mutex_);
  const bool fills_page = std::max<uint64_t>(size, stats_.bytes_in_use) >= kEnoughForHugePages;
  void* memory = fills_page ? Take(size) : nullptr;
  Region* const region = memory == nullptr ? nullptr : current_;
  if (memory == nullptr) memory = AllocateSystemMemory(size, huge_pages_);
  if (memory == nullptr) return nullptr;
  blocks_[memory] = {region, size};
  stats_.bytes_in_use += size;
  ++stats_.allocations;
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  return memory;
}

void* LastingMemory::AllocateLarge(size_t bytes) {
  if (bytes > SIZE_MAX / 2) return nullptr;
  const size_t size = RoundUp(bytes, kPageBytes);
  void* const memory = ReserveHugePages(size, huge_pages_);
  if (memory == nullptr) return AllocateSystemMemory(bytes, huge_pages_);
  const MutexLock lock(mutex_);
  blocks_[memory] = {nullptr, size};
  return memory;
}

void LastingMemory::Free(void* memory) {
  const MutexLock lock(mutex_);
  const auto found = blocks_.find(memory);
  const Block block = found == blocks_.end() ? Block{nullptr, 0} : found->second;
  if (found != blocks_.end()) blocks_.erase(found);
  if (block.size > kMostMedium) return ReturnHugePages(memory, block.size);
  stats_.bytes_in_use -= block.size;
  if (block.region == nullptr) {
    std::free(memory);
  } else {
    FreeInRegion(*block.region, memory, block.size);
  }
}

void LastingMemory::FreeInRegion(Region& region, void* memory, size_t size) {
  if (--region.live_blocks > 0) {
    ReleaseWholePages(memory, size);
    // Once for a region, since each part with settings of its own is another mapping for the
    // system, of which a process has at most 65,530.
    if (&region != current_ && !std::exchange(region.stays_small, true)) {
      LeavePagesSmall(region.memory, kRegionBytes);
    }
    return;
  }
  if (&region == current_) current_ = nullptr;
  ReturnHugePages(region.memory, kRegionBytes);
  stats_.bytes_reserved -= kRegionBytes;
  delete &region;
}

AllocatorStats LastingMemory::Stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

// Both are never destroyed: tensors may outlive every other object of the library.
std::shared_ptr<Allocator> SharedLastingMemory() {
  static const auto* const allocator =
      new std::shared_ptr<Allocator>(std::make_shared<LastingMemory>(HugePages::kPreferred));
  return *allocator;
}

std::shared_ptr<Allocator> SharedWorkMemory() {
  static const auto* const allocator =
      new std::shared_ptr<Allocator>(std::make_shared<LastingMemory>(HugePages::kIfQuick));
  return *allocator;
}

}  // namespace tenon
