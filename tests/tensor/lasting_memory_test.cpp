#include "tensor/lasting_memory.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tenon {
namespace {

struct Held {
  std::byte* memory;
  size_t bytes;
  int fill;
};

Held Hold(LastingMemory& memory, size_t bytes, int fill) {
  auto* const block = static_cast<std::byte*>(memory.Allocate(bytes));
  EXPECT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % Allocator::kAlignment, 0u);
  std::memset(block, fill, bytes);  // the sanitizer build sees a block that is too small
  return {block, bytes, fill};
}

void ExpectWhole(const Held& held) {
  const auto is_kept = [&](size_t i) {
    return held.memory[i] == static_cast<std::byte>(held.fill);
  };
  for (size_t i = 0; i < held.bytes; i += 61) ASSERT_TRUE(is_kept(i)) << i << " of " << held.bytes;
  EXPECT_TRUE(held.bytes == 0 || is_kept(held.bytes - 1));
}

class LastingMemoryTest : public testing::TestWithParam<HugePages> {};
INSTANTIATE_TEST_SUITE_P(HugePages, LastingMemoryTest,
                         testing::Values(HugePages::kPreferred, HugePages::kIfQuick));

TEST_P(LastingMemoryTest, BlocksOfAnySizeHoldWhatWasWritten) {
  LastingMemory memory(GetParam());
  std::vector<Held> held;
  int fill = 0;
  for (int round = 0; round < 3; ++round) {
    for (size_t bytes = 0; bytes < (size_t{20} << 20); bytes = bytes * 3 + 1) {
      held.push_back(Hold(memory, bytes, ++fill % 100));
    }
  }
  // Every other block is freed first: its neighbours keep their contents.
  for (size_t i = 0; i < held.size(); i += 2) memory.Free(held[i].memory);
  for (size_t i = 1; i < held.size(); i += 2) ExpectWhole(held[i]);
  for (size_t i = 1; i < held.size(); i += 2) memory.Free(held[i].memory);
  EXPECT_EQ(memory.Stats().bytes_in_use, 0u);
  EXPECT_EQ(memory.Stats().bytes_reserved, 0u);
  memory.Free(nullptr);
}

TEST_P(LastingMemoryTest, TakesHugePagesOnlyForWhatFillsOne) {
  LastingMemory memory(GetParam());
  std::vector<void*> blocks;
  constexpr size_t kBytes = size_t{100} << 10;
  for (size_t bytes = 0; bytes < (size_t{1} << 20); bytes += kBytes) {
    blocks.push_back(memory.Allocate(kBytes));
  }
  EXPECT_EQ(memory.Stats().bytes_reserved, 0u);
  for (int i = 0; i < 1000; ++i) blocks.push_back(memory.Allocate(kBytes));
  const size_t reserved = memory.Stats().bytes_reserved;
  for (void* const block : blocks) memory.Free(block);
  EXPECT_EQ(memory.Stats().bytes_reserved, 0u);
  // Four regions, or none if blocks are left to the C library.
  EXPECT_TRUE(reserved == size_t{128} << 20 || reserved == 0) << reserved;
}

TEST_P(LastingMemoryTest, AnImpossibleSizeGivesNull) {
  LastingMemory memory(GetParam());
  EXPECT_EQ(memory.Allocate(SIZE_MAX), nullptr);
  EXPECT_EQ(memory.Allocate(SIZE_MAX / 4 * 3), nullptr);
  // More than any machine has: taking it would end the process when it is written.
  constexpr uint64_t kTooMuch = uint64_t{1} << 46;
  if (kTooMuch < SIZE_MAX) EXPECT_EQ(memory.Allocate(static_cast<size_t>(kTooMuch)), nullptr);
  EXPECT_EQ(memory.Stats().bytes_in_use, 0u);
}

}  // namespace
}  // namespace tenon
