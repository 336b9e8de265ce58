#include "base/huge_pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#endif

namespace tenon {

#if defined(__linux__)

void PreferHugePages(void* begin, size_t bytes) {
  // A page that is only partly requested stays small, so that no memory is used that was not
  // requested.
  madvise(begin, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
}

#if defined(TENON_SANITIZED)
void* ReserveHugePages(size_t) { return nullptr; }
#else
void* ReserveHugePages(size_t bytes) {
  void* const mapped = mmap(nullptr, bytes + kHugePageBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(first) % kHugePageBytes;
  if (before > 0) munmap(first, before);
  if (before < kHugePageBytes) munmap(first + before + bytes, kHugePageBytes - before);
  PreferHugePages(first + before, bytes);
  return first + before;
}
#endif

void ReturnHugePages(void* begin, size_t bytes) { munmap(begin, bytes); }

void ReleaseWholePages(void* begin, size_t bytes) {
  static const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto address = reinterpret_cast<uintptr_t>(begin);
  const uintptr_t first = (address + page - 1) / page * page, end = (address + bytes) / page * page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

#else

void PreferHugePages(void*, size_t) {}
void* ReserveHugePages(size_t) { return nullptr; }
void ReturnHugePages(void*, size_t) {}
void ReleaseWholePages(void*, size_t) {}

#endif

}  // namespace tenon
