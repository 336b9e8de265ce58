#include "base/huge_pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#endif

namespace tenon {

#if defined(__linux__)

namespace {

using Clock = std::chrono::steady_clock;

// The small pages in the place of a huge one take some 0.5 ms, and a huge page of memory that was
// in use before takes 0.2.
constexpr auto kQuick = std::chrono::microseconds(800);
// A trial may take 5 ms.
constexpr auto kBetweenTrials = std::chrono::milliseconds(250);

// Writes the first of some huge pages, and says whether that was quick. Not at each call: while the
// last trial was slow and not long ago, the answer is no.
bool AreHugePagesQuick(std::byte* first) {
  static std::atomic<Clock::rep> slow_until = 0;
  const Clock::time_point begin = Clock::now();
  if (begin.time_since_epoch().count() < slow_until.load(std::memory_order_relaxed)) return false;
  madvise(first, kHugePageBytes, MADV_HUGEPAGE);
  *static_cast<volatile std::byte*>(first) = std::byte{0};
  const Clock::time_point end = Clock::now();
  if (end - begin < kQuick) return true;
  slow_until.store((end + kBetweenTrials).time_since_epoch().count(), std::memory_order_relaxed);
  return false;
}

}  // namespace

void PreferHugePages(void* begin, size_t bytes, HugePages when) {
  // A page that is only partly requested stays small, so that no memory is used that was not
  // requested.
  const size_t before = -reinterpret_cast<uintptr_t>(begin) % kHugePageBytes;
  if (bytes < before + kHugePageBytes) return;
  auto* const first = static_cast<std::byte*>(begin) + before;
  if (when == HugePages::kIfQuick && !AreHugePagesQuick(first)) return;
  madvise(first, (bytes - before) / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
}

#if defined(TENON_SANITIZED)
void* ReserveHugePages(size_t, HugePages) { return nullptr; }
#else
void* ReserveHugePages(size_t bytes, HugePages when) {
  void* const mapped = mmap(nullptr, bytes + kHugePageBytes, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  auto* const first = static_cast<std::byte*>(mapped);
  const size_t before = -reinterpret_cast<uintptr_t>(first) % kHugePageBytes;
  if (before > 0) munmap(first, before);
  if (before < kHugePageBytes) munmap(first + before + bytes, kHugePageBytes - before);
  PreferHugePages(first + before, bytes, when);
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

void LeavePagesSmall(void* begin, size_t bytes) { madvise(begin, bytes, MADV_NOHUGEPAGE); }

#else

void PreferHugePages(void*, size_t, HugePages) {}
void* ReserveHugePages(size_t, HugePages) { return nullptr; }
void ReturnHugePages(void*, size_t) {}
void ReleaseWholePages(void*, size_t) {}
void LeavePagesSmall(void*, size_t) {}

#endif

}  // namespace tenon
