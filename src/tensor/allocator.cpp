#include "tensor/allocator.h"

#include <cstdlib>

#include "tensor/system_memory.h"

namespace tenon {
namespace {

static_assert(kSystemAlignment >= Allocator::kAlignment);

class SystemAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    return AllocateSystemMemory(bytes, HugePages::kPreferred);
  }
  void Free(void* block) override { std::free(block); }
  const MemoryInfo& info() const override { return CpuMemory(); }
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
