#include "base/repeated_memory.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <fstream>
#include <string>

namespace tenon {
namespace {

// A block of numbers that count up, for memory of `bytes` bytes.
std::unique_ptr<RepeatedBlock> CountingBlock(size_t bytes) {
  const size_t period = RepeatedPeriod(bytes);
  return MakeRepeatedBlock(period, [&](std::byte* block) {
    for (size_t i = 0; i < period / sizeof(uint32_t); ++i) {
      const auto number = static_cast<uint32_t>(i);
      std::memcpy(block + i * sizeof number, &number, sizeof number);
    }
  });
}

std::shared_ptr<const void> Repeat(size_t bytes) {
  const auto block = CountingBlock(bytes);
  return block ? block->Map(bytes) : nullptr;
}

void ExpectCounting(const void* memory, size_t bytes, size_t period) {
  const auto* const words = static_cast<const uint32_t*>(memory);
  size_t wrong = 0;
  for (size_t i = 0; i < bytes / sizeof(uint32_t); ++i) {
    wrong += words[i] != i % (period / sizeof(uint32_t));
  }
  EXPECT_EQ(wrong, 0) << bytes;
}

TEST(RepeatedMemoryTest, HoldsTheBlockAgainAndAgain) {
  for (const size_t bytes : {kLeastRepeated, kLeastRepeated + 4, (size_t{100} << 20) + 12345}) {
    const size_t period = RepeatedPeriod(bytes);
    EXPECT_TRUE(std::has_single_bit(period));
    EXPECT_GE(period, size_t{256} << 10);
    EXPECT_LT(period, bytes);
    const std::shared_ptr<const void> memory = Repeat(bytes);
    if (memory == nullptr) GTEST_SKIP() << "this system does not repeat memory";
    ExpectCounting(memory.get(), bytes, period);
  }
}

TEST(RepeatedMemoryTest, IsMappedAsOftenAsOneLikes) {
  auto block = CountingBlock(kLeastRepeated);
  if (block == nullptr) GTEST_SKIP() << "this system does not repeat memory";
  const size_t period = block->period();
  const auto first = block->Map(kLeastRepeated), second = block->Map(3 * kLeastRepeated + 4);
  block = nullptr;
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  EXPECT_NE(first, second);
  ExpectCounting(first.get(), kLeastRepeated, period);
  ExpectCounting(second.get(), 3 * kLeastRepeated + 4, period);
}

// A process has some 65,000 mappings.
TEST(RepeatedMemoryTest, TakesFewMappings) {
  const auto count_mappings = [] {
    std::ifstream maps("/proc/self/maps");
    size_t count = 0;
    for (std::string line; std::getline(maps, line);) {
      count += line.find("tenon repeated") != std::string::npos;
    }
    return count;
  };
  std::shared_ptr<const void> memory = Repeat(size_t{1} << 30);
  if (memory == nullptr) GTEST_SKIP() << "this system does not repeat memory";
  EXPECT_GE(count_mappings(), 1);
  EXPECT_LE(count_mappings(), 64);
  memory = nullptr;
  EXPECT_EQ(count_mappings(), 0);
}

TEST(RepeatedMemoryDeathTest, CannotBeWritten) {
  const std::shared_ptr<const void> memory = Repeat(kLeastRepeated);
  if (memory == nullptr) GTEST_SKIP() << "this system does not repeat memory";
  EXPECT_DEATH(*static_cast<volatile char*>(const_cast<void*>(memory.get())) = 1, "");
}

}  // namespace
}  // namespace tenon
