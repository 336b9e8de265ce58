#include "base/repeated_memory.h"

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>

#include "base/file_descriptor.h"
#endif

namespace tenon {

#if defined(__linux__)

namespace {

// A process has 65,530 mappings, so each memory gets few: its period grows with it.
constexpr size_t kLeastPeriod = size_t{256} << 10;
constexpr size_t kMostMappings = 64;

}  // namespace

std::shared_ptr<const void> RepeatMemory(size_t bytes,
                                         FunctionRef<void(std::byte* block, size_t period)> fill) {
  const size_t period = std::max(kLeastPeriod, std::bit_ceil(bytes / kMostMappings));
  const FileDescriptor file(memfd_create("tenon repeated", MFD_CLOEXEC));
  if (!file.valid() || ftruncate(file.number(), static_cast<off_t>(period)) != 0) return nullptr;

  // Reserves the addresses; the first period is written through before all become read-only.
  void* const mapped =
      mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) return nullptr;
  std::shared_ptr<const void> memory(
      mapped, [bytes](const void* begin) { munmap(const_cast<void*>(begin), bytes); });
  auto* const first = static_cast<std::byte*>(mapped);
  const auto map = [&](size_t offset, int protection) {
    return mmap(first + offset, std::min(period, bytes - offset), protection,
                MAP_SHARED | MAP_FIXED, file.number(), 0) != MAP_FAILED;
  };
  if (!map(0, PROT_READ | PROT_WRITE)) return nullptr;
  fill(first, period);
  for (size_t offset = 0; offset < bytes; offset += period) {
    if (!map(offset, PROT_READ)) return nullptr;
  }
  return memory;
}

#else

std::shared_ptr<const void> RepeatMemory(size_t, FunctionRef<void(std::byte*, size_t)>) {
  return nullptr;
}

#endif

}  // namespace tenon
