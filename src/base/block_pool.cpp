#include "base/block_pool.h"

#include <algorithm>
#include <bit>
#include <new>

#include "base/thread_end.h"

#if defined(__SANITIZE_ADDRESS__)
#define TENON_POISONS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define TENON_POISONS 1
#endif
#endif
#if defined(TENON_POISONS)
#include <sanitizer/asan_interface.h>
#endif

namespace tenon {
namespace {

constexpr size_t kMostPooledBytes = size_t{256} << 10;
constexpr size_t kMostKeptBytes = size_t{64} << 10;  // of each size

// Sizes are (4 + i) / 4 * 2^k for i in 0..3, from 64 bytes on.
size_t SizeIndex(size_t bytes) {
  const size_t rounded = std::max<size_t>(bytes, 64) - 1;
  const auto exponent = static_cast<size_t>(std::bit_width(rounded)) - 1;
  return (exponent - 5) * 4 + ((rounded >> (exponent - 2)) & 3) - 3;
}

size_t BytesOf(size_t index) { return (4 + (index + 3) % 4 + 1) << ((index + 3) / 4 + 3); }

constexpr size_t kSizes = 49;

size_t MostKept(size_t index) { return std::max<size_t>(kMostKeptBytes / BytesOf(index), 2); }

struct FreeBlock {
  FreeBlock* next;
};

// The blocks of a thread. Nothing is shared, so nothing is locked, and a forked child process finds
// a consistent state.
struct Pool {
  FreeBlock* free[kSizes] = {};
  size_t kept[kSizes] = {};
  bool is_emptied = false;  // when the thread ends
  bool is_over = false;     // the thread ends, and its blocks go to the heap
};
thread_local constinit Pool pool;

// The sanitizer detects uses of more of a block than was requested, or of a freed block. The link
// to the next free block stays readable, because objects that are reached from poisoned memory
// count as leaked.
void Poison([[maybe_unused]] void* block, [[maybe_unused]] size_t from,
            [[maybe_unused]] size_t index) {
#if defined(TENON_POISONS)
  ASAN_UNPOISON_MEMORY_REGION(block, from);
  ASAN_POISON_MEMORY_REGION(static_cast<char*>(block) + from, BytesOf(index) - from);
#endif
}

void Delete(void* block, size_t index) {
  Poison(block, BytesOf(index), index);
  operator delete(block);
}

FreeBlock* Pop(size_t index) {
  FreeBlock* const first = pool.free[index];
  if (first == nullptr) return nullptr;
  pool.free[index] = first->next;
  --pool.kept[index];
  return first;
}

// Gives the blocks of the calling thread back to the heap.
void EmptyPool(void*) {
  pool.is_over = true;
  for (size_t index = 0; index < kSizes; ++index) {
    while (FreeBlock* const block = Pop(index)) Delete(block, index);
  }
}

// Whether the pool may keep blocks: if it will be emptied when the thread ends.
bool MayKeep() {
  static ThreadEnd thread_end(EmptyPool);
  if (!pool.is_emptied) pool.is_emptied = thread_end.SetObject(&pool);
  return pool.is_emptied && !pool.is_over;
}

}  // namespace

void* TakePooledBlock(size_t bytes) {
  if (bytes > kMostPooledBytes) return operator new(bytes);
  const size_t index = SizeIndex(bytes);
  void* block = Pop(index);
  if (block == nullptr) block = operator new(BytesOf(index));
  Poison(block, bytes, index);
  return block;
}

void ReturnPooledBlock(void* block, size_t bytes) noexcept {
  if (bytes > kMostPooledBytes) return operator delete(block);
  const size_t index = SizeIndex(bytes);
  if (pool.kept[index] == MostKept(index) || !MayKeep()) return Delete(block, index);
  Poison(block, sizeof(FreeBlock), index);
  auto* const freed = static_cast<FreeBlock*>(block);
  freed->next = pool.free[index];
  pool.free[index] = freed;
  ++pool.kept[index];
}

}  // namespace tenon
