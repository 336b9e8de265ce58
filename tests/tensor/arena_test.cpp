#include "tensor/arena.h"

#include <gtest/gtest.h>

#include <cstring>

#include "tensor/tensor.h"

namespace tenon {
namespace {

// Counts what reaches the layer below.
class CountingAllocator final : public Allocator {
 public:
  void* Allocate(size_t bytes) override {
    ++allocations;
    ++live;
    return CpuAllocator().Allocate(bytes);
  }
  void Free(void* block) override {
    --live;
    CpuAllocator().Free(block);
  }
  const MemoryInfo& info() const override { return CpuMemory(); }
  int allocations = 0;
  int live = 0;
};

TEST(CachingArenaTest, BlocksHoldWhatWasAskedFor) {
  auto arena = std::make_shared<CachingArena>(SharedCpuAllocator());
  for (size_t bytes = 0; bytes < 5000; bytes += 7) {
    void* block = arena->Allocate(bytes);
    ASSERT_NE(block, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % Allocator::kAlignment, 0u);
    std::memset(block, 1, bytes);  // the sanitizer build sees a block that is too small
    arena->Free(block);
  }
  EXPECT_EQ(arena->Stats().bytes_in_use, 0u);
}

TEST(CachingArenaTest, ASteadyPatternStopsReachingTheBase) {
  auto base = std::make_shared<CountingAllocator>();
  auto arena = std::make_shared<CachingArena>(base);
  for (int run = 0; run < 5; ++run) {
    std::vector<Tensor> tensors;
    for (int64_t n : {10, 1000, 100000}) {
      tensors.push_back(Tensor::Allocate(DataType::kFloat, {n}, arena).value());
    }
  }
  EXPECT_EQ(base->allocations, 3);
  EXPECT_TRUE(arena->Shrink().ok());
  EXPECT_EQ(base->live, 0);
  EXPECT_EQ(arena->Stats().bytes_reserved, 0u);
}

TEST(CachingArenaTest, LargeRequestsTakeLargerFreedBlocks) {
  auto base = std::make_shared<CountingAllocator>();
  CachingArena arena(base);
  arena.Free(arena.Allocate(1000000));
  void* const quarter = arena.Allocate(260000);
  EXPECT_EQ(base->allocations, 1);
  EXPECT_GE(arena.Stats().bytes_in_use, 1000000u);
  arena.Free(quarter);
  EXPECT_EQ(arena.Stats().bytes_in_use, 0u);
  void* const hundredth = arena.Allocate(10000);
  void* const eighth = arena.Allocate(125000);
  EXPECT_EQ(base->allocations, 3);
  arena.Free(hundredth);
  arena.Free(eighth);
}

TEST(CachingArenaTest, WastesAFifthAtMost) {
  for (size_t bytes = 1000; bytes < 200000; bytes += 997) {
    CachingArena arena(SharedCpuAllocator());
    void* block = arena.Allocate(bytes);
    EXPECT_LE(arena.Stats().bytes_in_use, bytes * 5 / 4 + 64) << bytes;
    arena.Free(block);
  }
}

TEST(CachingArenaTest, KeepsToItsLimit) {
  CachingArena arena(SharedCpuAllocator(), 100000);
  void* a = arena.Allocate(40000);
  EXPECT_NE(a, nullptr);
  EXPECT_EQ(arena.Allocate(70000), nullptr);
  arena.Free(a);
  void* b = arena.Allocate(70000);  // the cached block makes room
  EXPECT_NE(b, nullptr);
  arena.Free(b);
  EXPECT_EQ(arena.Allocate(SIZE_MAX - 1), nullptr);
}

}  // namespace
}  // namespace tenon
