#include "tensor/allocator.h"

#include <algorithm>
#include <cstdlib>  // posix_memalign besides the standard's

#include "base/huge_pages.h"

namespace tenon {
namespace {

class SystemAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    if (bytes > SIZE_MAX - kAlignment) return nullptr;
    if (bytes >= kHugePageBytes) return AllocateHuge(bytes);
    const size_t whole_lines = std::max<size_t>((bytes + kAlignment - 1) / kAlignment, 1);
    return std::aligned_alloc(kAlignment, whole_lines * kAlignment);
  }
  void Free(void* block) override { std::free(block); }
  const MemoryInfo& info() const override { return CpuMemory(); }

 private:
  static void* AllocateHuge(size_t bytes) {
    void* block = nullptr;
    if (posix_memalign(&block, kHugePageBytes, bytes) != 0) return nullptr;
    PreferHugePages(block, bytes);
    return block;
  }
};

}  // namespace

std::shared_ptr<Allocator> SharedCpuAllocator() {
  // Never destroyed: tensors may outlive every other object of the library.
  static const auto* const allocator =
      new std::shared_ptr<Allocator>(std::make_shared<SystemAllocator>());
  return *allocator;
}

Allocator& CpuAllocator() { return *SharedCpuAllocator(); }

}  // namespace tenon
