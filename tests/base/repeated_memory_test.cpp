#include "base/repeated_memory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <string>

namespace tenon {
namespace {

// Fills blocks with numbers that count up, and keeps the last period.
struct Counting {
  size_t period = 0;
  void operator()(std::byte* block, size_t bytes) {
    period = bytes;
    for (size_t i = 0; i < bytes / sizeof(uint32_t); ++i) {
      const auto number = static_cast<uint32_t>(i);
      std::memcpy(block + i * sizeof number, &number, sizeof number);
    }
  }
};

TEST(RepeatedMemoryTest, HoldsTheBlockAgainAndAgain) {
  for (const size_t bytes : {kLeastRepeated, kLeastRepeated + 4, (size_t{100} << 20) + 12345}) {
    Counting count;
    const std::shared_ptr<const void> memory = RepeatMemory(bytes, count);
    if (memory == nullptr) GTEST_SKIP() << "this system does not repeat memory";
    EXPECT_TRUE(std::has_single_bit(count.period));
    EXPECT_GE(count.period, size_t{256} << 10);
    EXPECT_LT(count.period, bytes);
    const auto* const words = static_cast<const uint32_t*>(memory.get());
    size_t wrong = 0;
    for (size_t i = 0; i < bytes / sizeof(uint32_t); ++i) {
      wrong += words[i] != i % (count.period / sizeof(uint32_t));
    }
    EXPECT_EQ(wrong, 0) << bytes;
  }
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
  std::shared_ptr<const void> memory =
      RepeatMemory(size_t{1} << 30, [](std::byte* block, size_t) { *block = std::byte{1}; });
  if (memory == nullptr) GTEST_SKIP() << "this system does not repeat memory";
  EXPECT_GE(count_mappings(), 1);
  EXPECT_LE(count_mappings(), 64);
  memory = nullptr;
  EXPECT_EQ(count_mappings(), 0);
}

TEST(RepeatedMemoryDeathTest, CannotBeWritten) {
  const std::shared_ptr<const void> memory =
      RepeatMemory(kLeastRepeated, [](std::byte*, size_t) {});
  if (memory == nullptr) GTEST_SKIP() << "this system does not repeat memory";
  EXPECT_DEATH(*static_cast<volatile char*>(const_cast<void*>(memory.get())) = 1, "");
}

}  // namespace
}  // namespace tenon
