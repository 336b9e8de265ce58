#include "base/allocation_count.h"

#include <cstdlib>
#include <new>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace {
thread_local size_t allocations = 0;
}  // namespace

size_t tenon::AllocationsOnThisThread() { return allocations; }

void* operator new(size_t size, const std::nothrow_t&) noexcept {
  ++allocations;
  return std::malloc(size);
}
void* operator new(size_t size) {
  if (void* memory = operator new(size, std::nothrow)) return memory;
  throw std::bad_alloc();
}

#if defined(__GLIBC__)
// The functions that allocators of tensors call.
extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  ++allocations;
  return memalign(alignment, size);
}
#endif

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
