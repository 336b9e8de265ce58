// Freed blocks of memory that are kept for the next request of their size.
#pragma once

#include <cstddef>
#include <vector>

namespace tenon {

// At least `bytes` bytes, aligned as operator new aligns, to be freed, by any thread, with the same
// `bytes`. Blocks of up to 256 KiB come from a pool of the thread, which keeps 64 KiB of each size,
// or two blocks, until the thread ends; larger ones come from the heap. Throws std::bad_alloc.
void* TakePooledBlock(size_t bytes);
void ReturnPooledBlock(void* block, size_t bytes) noexcept;

template <class T>
struct PoolAllocator {
  using value_type = T;
  PoolAllocator() = default;
  template <class U>
  PoolAllocator(const PoolAllocator<U>&) {}  // NOLINT(google-explicit-constructor)
  T* allocate(size_t count) { return static_cast<T*>(TakePooledBlock(count * sizeof(T))); }
  void deallocate(T* block, size_t count) { ReturnPooledBlock(block, count * sizeof(T)); }
  template <class U>
  bool operator==(const PoolAllocator<U>&) const {
    return true;
  }
};

// For lists that live as long as a run, so that a steady run does not use the heap.
template <class T>
using PooledVector = std::vector<T, PoolAllocator<T>>;

}  // namespace tenon
