#include "capi/scarce_memory.h"

#include <dlfcn.h>
#include <malloc.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace {

using tenon::test::Scarcity;

std::atomic<bool> is_scarce = false;
std::atomic<size_t> requests = 0;
std::atomic<size_t> blocks = 0;
size_t first_failing = 0;
Scarcity how = Scarcity::kOnce;

bool Fails() {
  if (!is_scarce.load(std::memory_order_relaxed)) return false;
  const size_t request = requests.fetch_add(1) + 1;
  if (first_failing == 0) return false;
  return how == Scarcity::kOnce ? request == first_failing : request >= first_failing;
}

void* Take(size_t alignment, size_t size) {
  if (Fails()) return nullptr;
  void* const block = memalign(alignment, size);
  if (block != nullptr) ++blocks;
  return block;
}

void Free(void* block) {
  if (block == nullptr) return;
  --blocks;
  std::free(block);
}

void* OrThrow(void* block) {
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

}  // namespace

namespace tenon::test {

void BeginScarcity(size_t first, Scarcity scarcity) {
  first_failing = first;
  how = scarcity;
  requests = 0;
  is_scarce = true;
}

size_t EndScarcity() {
  is_scarce = false;
  return requests;
}

size_t LiveBlocks() { return blocks; }

}  // namespace tenon::test

void* operator new(size_t size) { return OrThrow(Take(16, size)); }
void* operator new(size_t size, const std::nothrow_t&) noexcept { return Take(16, size); }
void* operator new(size_t size, std::align_val_t alignment) {
  return OrThrow(Take(static_cast<size_t>(alignment), size));
}
void operator delete(void* block) noexcept { Free(block); }
void operator delete(void* block, size_t) noexcept { Free(block); }
void operator delete(void* block, std::align_val_t) noexcept { Free(block); }
void operator delete(void* block, size_t, std::align_val_t) noexcept { Free(block); }

// These blocks are freed by the C library's free, so they are not among the live ones.
extern "C" void* aligned_alloc(size_t alignment, size_t size) {
  return Fails() ? nullptr : memalign(alignment, size);
}
extern "C" int posix_memalign(void** block, size_t alignment, size_t size) {
  *block = Fails() ? nullptr : memalign(alignment, size);
  return *block == nullptr ? ENOMEM : 0;
}
extern "C" void* mmap(void* address, size_t length, int protection, int flags, int file,
                      off_t offset) noexcept {
  using Function = void* (*)(void*, size_t, int, int, int, off_t);
  static const auto function = reinterpret_cast<Function>(dlsym(RTLD_NEXT, "mmap"));
  if (Fails()) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return function(address, length, protection, flags, file, offset);
}
