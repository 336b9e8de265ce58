#include "base/block_pool.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <memory>
#if !defined(__wasm__)
#include <thread>
#endif

#include "base/allocation_count.h"
#include "base/inline_array.h"

namespace tenon {
namespace {

TEST(BlockPoolTest, BlocksHoldWhatWasAskedFor) {
  for (const size_t bytes : {size_t{0}, size_t{1}, size_t{64}, size_t{65}, size_t{80}, size_t{4096},
                             size_t{5000}, size_t{256} << 10, (size_t{256} << 10) + 1}) {
    void* const block = TakePooledBlock(bytes);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % alignof(std::max_align_t), 0u);
    std::memset(block, 1, bytes);
    void* const other = TakePooledBlock(bytes);
    std::memset(other, 2, bytes);
    for (size_t i = 0; i < bytes; ++i) ASSERT_EQ(static_cast<uint8_t*>(block)[i], 1);
    ReturnPooledBlock(block, bytes);
    ReturnPooledBlock(other, bytes);
  }
}

TEST(BlockPoolTest, ABlockServesAgainUpTo256KiB) {
  const auto allocations = [](size_t bytes) {
    ReturnPooledBlock(TakePooledBlock(bytes), bytes);
    const size_t before = AllocationsOnThisThread();
    for (int i = 0; i < 10; ++i) ReturnPooledBlock(TakePooledBlock(bytes), bytes);
    return AllocationsOnThisThread() - before;
  };
  EXPECT_EQ(allocations(10), 0u);
  EXPECT_EQ(allocations(100'000), 0u);
  EXPECT_EQ(allocations(size_t{256} << 10), 0u);
  EXPECT_EQ(allocations((size_t{256} << 10) + 1), 10u);
}

// 64 KiB of a size are kept, or two blocks.
TEST(BlockPoolTest, KeepsABoundedNumber) {
  constexpr size_t kBytes = 48 << 10, kBlocks = 5;
  void* blocks[kBlocks];
  const auto take_and_return = [&] {
    const size_t before = AllocationsOnThisThread();
    for (void*& block : blocks) block = TakePooledBlock(kBytes);
    for (void* const block : blocks) ReturnPooledBlock(block, kBytes);
    return AllocationsOnThisThread() - before;
  };
  take_and_return();
  EXPECT_EQ(take_and_return(), kBlocks - 2);
}

TEST(BlockPoolTest, ArraysOfFixedSizeUseThePool) {
  const auto fill = [](size_t size) {
    InlineArray<std::shared_ptr<int>, 4> array(size);
    for (const auto& element : array.span()) EXPECT_EQ(element, nullptr);
    return array.size();
  };
  const auto counted = std::make_shared<int>(1);
  for (const size_t size : {size_t{0}, size_t{4}, size_t{5}, size_t{500}}) {
    EXPECT_EQ(fill(size), size);
    const size_t before = AllocationsOnThisThread();
    for (int i = 0; i < 10; ++i) fill(size);
    EXPECT_EQ(AllocationsOnThisThread() - before, 0u);
    {
      InlineArray<std::shared_ptr<int>, 4> array(size);
      for (size_t i = 0; i < size; ++i) array[i] = counted;
      EXPECT_EQ(counted.use_count(), static_cast<long>(size) + 1);
    }
    EXPECT_EQ(counted.use_count(), 1);
  }
}

TEST(BlockPoolTest, ListsGrowAndMove) {
  PooledVector<int> list;
  for (int i = 0; i < 1000; ++i) list.push_back(i);
  const PooledVector<int> moved = std::move(list);
  for (int i = 0; i < 1000; ++i) ASSERT_EQ(moved[static_cast<size_t>(i)], i);
}

#if !defined(__wasm__)
// The blocks of a thread, also those from another thread, are freed with it, as a leak checker
// shows.
TEST(BlockPoolTest, AnyThreadMayGiveABlockBack) {
  for (int repeat = 0; repeat < 3; ++repeat) {
    void* const block = TakePooledBlock(1000);
    void* from_other = nullptr;
    std::thread([&] {
      std::memset(block, 1, 1000);
      ReturnPooledBlock(block, 1000);
      from_other = TakePooledBlock(1000);
      EXPECT_EQ(from_other, block);
      ReturnPooledBlock(TakePooledBlock(50), 50);
    }).join();
    ReturnPooledBlock(from_other, 1000);
  }
}
#endif

}  // namespace
}  // namespace tenon
