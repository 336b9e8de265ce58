#include "base/repeated_memory.h"

#include <algorithm>
#include <bit>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>

#include <utility>

#include "base/file_descriptor.h"
#endif

namespace tenon {
namespace {

// A process has at most 65,530 mappings, so each memory gets few: its period grows with its size.
constexpr size_t kLeastPeriod = size_t{256} << 10;
constexpr size_t kMostMappings = 64;

#if defined(__linux__)

class RepeatedFile final : public RepeatedBlock {
 public:
  RepeatedFile(FileDescriptor file, size_t period) : file_(std::move(file)), period_(period) {}

  size_t period() const override { return period_; }

  std::shared_ptr<const void> Map(size_t bytes) const override {
    void* const mapped =
        mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) return nullptr;
    std::shared_ptr<const void> memory(
        mapped, [bytes](const void* begin) { munmap(const_cast<void*>(begin), bytes); });
    auto* const first = static_cast<std::byte*>(mapped);
    for (size_t offset = 0; offset < bytes; offset += period_) {
      if (mmap(first + offset, std::min(period_, bytes - offset), PROT_READ, MAP_SHARED | MAP_FIXED,
               file_.number(), 0) == MAP_FAILED) {
        return nullptr;
      }
    }
    return memory;
  }

 private:
  const FileDescriptor file_;
  const size_t period_;
};

#endif

}  // namespace

size_t RepeatedPeriod(size_t bytes) {
  return std::max(kLeastPeriod, std::bit_ceil(bytes / kMostMappings));
}

#if defined(__linux__)

std::unique_ptr<RepeatedBlock> MakeRepeatedBlock(size_t period,
                                                 FunctionRef<void(std::byte* block)> fill) {
  FileDescriptor file(memfd_create("tenon repeated", MFD_CLOEXEC));
  if (!file.valid() || ftruncate(file.number(), static_cast<off_t>(period)) != 0) return nullptr;
  void* const mapped = mmap(nullptr, period, PROT_READ | PROT_WRITE, MAP_SHARED, file.number(), 0);
  if (mapped == MAP_FAILED) return nullptr;
  fill(static_cast<std::byte*>(mapped));
  munmap(mapped, period);
  return std::make_unique<RepeatedFile>(std::move(file), period);
}

#else

std::unique_ptr<RepeatedBlock> MakeRepeatedBlock(size_t, FunctionRef<void(std::byte*)>) {
  return nullptr;
}

#endif

}  // namespace tenon
