#include "tensor/arena.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace tenon {

// Precedes the caller's memory. It has one cache line, so that the caller's part is aligned.
struct alignas(Allocator::kAlignment) CachingArena::Block {
  size_t size_class;
  size_t requested;
  Block* next;
};

namespace {

constexpr size_t kSmallest = 64;
// From this size on, memory that was written before is better than a block of the right size.
constexpr size_t kLeastLarge = size_t{64} << 10;
constexpr size_t kMostClassesAbove = 8;  // four times the size

// Size classes are (4 + i) / 4 * 2^k for i in 0..3, from 64 bytes on.
size_t ClassOf(size_t bytes) {
  const size_t rounded = std::max(bytes, kSmallest) - 1;
  const auto exponent = static_cast<size_t>(std::bit_width(rounded)) - 1;
  const size_t quarter = (rounded >> (exponent - 2)) & 3;
  return (exponent - 5) * 4 + quarter + 1;
}

size_t BytesOfClass(size_t size_class) {
  const size_t exponent = (size_class - 1) / 4 + 5;
  const size_t quarter = (size_class - 1) % 4;
  return (4 + quarter + 1) << (exponent - 2);
}

}  // namespace

CachingArena::CachingArena(std::shared_ptr<Allocator> base, size_t limit_bytes)
    : base_(std::move(base)), limit_bytes_(limit_bytes) {
  stats_.bytes_limit = limit_bytes;
}

CachingArena::~CachingArena() { ShrinkLocked(); }

void* CachingArena::Allocate(size_t bytes) {
  if (bytes > SIZE_MAX / 4) return nullptr;
  const size_t size_class = ClassOf(bytes);
  const size_t block_bytes = BytesOfClass(size_class) + sizeof(Block);
  const MutexLock lock(mutex_);
  Block* block = TakeFree(size_class);
  if (block == nullptr) {
    const auto fits = [&] {
      return limit_bytes_ == 0 || stats_.bytes_reserved + block_bytes <= limit_bytes_;
    };
    if (!fits()) ShrinkLocked();
    if (!fits()) return nullptr;
    block = static_cast<Block*>(base_->Allocate(block_bytes));
    if (block == nullptr) {
      ShrinkLocked();
      block = static_cast<Block*>(base_->Allocate(block_bytes));
    }
    if (block == nullptr) return nullptr;
    block->size_class = size_class;
    stats_.bytes_reserved += block_bytes;
  }
  block->requested = bytes;
  ++stats_.allocations;
  stats_.bytes_requested += bytes;
  stats_.bytes_in_use += BytesOfClass(block->size_class) + sizeof(Block);
  stats_.peak_bytes_in_use = std::max(stats_.peak_bytes_in_use, stats_.bytes_in_use);
  return block + 1;
}

CachingArena::Block* CachingArena::TakeFree(size_t size_class) {
  const bool is_large = BytesOfClass(size_class) >= kLeastLarge;
  const size_t last = is_large ? size_class + kMostClassesAbove : size_class;
  for (size_t i = size_class; i <= last && i < kClasses; ++i) {
    if (Block* const block = free_[i]) {
      free_[i] = block->next;
      return block;
    }
  }
  return nullptr;
}

void CachingArena::Free(void* memory) {
  if (memory == nullptr) return;
  Block* block = static_cast<Block*>(memory) - 1;
  const MutexLock lock(mutex_);
  stats_.bytes_in_use -= BytesOfClass(block->size_class) + sizeof(Block);
  stats_.bytes_requested -= block->requested;
  block->next = free_[block->size_class];
  free_[block->size_class] = block;
}

AllocatorStats CachingArena::Stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

Status CachingArena::Shrink() {
  const MutexLock lock(mutex_);
  ShrinkLocked();
  return OkStatus();
}

void CachingArena::ShrinkLocked() {
  if (stats_.bytes_in_use == stats_.bytes_reserved) return;  // none is free
  for (size_t size_class = 0; size_class < kClasses; ++size_class) {
    while (Block* block = free_[size_class]) {
      free_[size_class] = block->next;
      stats_.bytes_reserved -= BytesOfClass(size_class) + sizeof(Block);
      base_->Free(block);
    }
  }
}

}  // namespace tenon
