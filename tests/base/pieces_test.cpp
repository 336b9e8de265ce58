#include "base/pieces.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <random>
#include <vector>

namespace tenon {
namespace {

std::vector<uint32_t> RandomNumbers(size_t n) {
  std::minstd_rand random(static_cast<uint32_t>(n) + 1);
  std::vector<uint32_t> numbers(n);
  for (uint32_t& number : numbers) number = random() % 100'000;
  return numbers;
}

TEST(PiecesTest, CoverTheWholeInOrder) {
  for (const size_t n : {size_t{0}, size_t{1}, size_t{1} << 17, (size_t{1} << 18) + 1}) {
    size_t done = 0;
    EXPECT_TRUE(InPieces(n, [&](size_t begin, size_t end) {
      EXPECT_EQ(begin, done);
      EXPECT_LT(begin, end);
      done = end;
    }));
    EXPECT_EQ(done, n);
  }
}

TEST(PiecesTest, EndWithTheRun) {
  std::atomic<bool> terminate = false;
  const StopSignal signal(&terminate, std::nullopt);
  const StopScope scope(&signal);
  size_t done = 0;
  EXPECT_FALSE(InPieces(size_t{1} << 20, [&](size_t, size_t end) {
    done = end;
    terminate = true;
  }));
  EXPECT_GT(done, 0u);
  EXPECT_LT(done, size_t{1} << 20);
  EXPECT_TRUE(signal.has_cut());
}

TEST(PiecesTest, SortAsTheWholeIsSorted) {
  // Around one run of 2^14 items, an odd and an even number of merges, and runs without a partner.
  for (const size_t n : {0, 1, 16383, 16384, 16385, 32768, 32769, 50'000, 70'000, 147'457}) {
    std::vector<uint32_t> items = RandomNumbers(n), spare(n), expected = items;
    std::sort(expected.begin(), expected.end(), std::greater<>());
    const uint32_t* const sorted = SortInPieces(items.data(), spare.data(), n, std::greater<>());
    EXPECT_EQ(std::vector(sorted, sorted + n), expected) << n;
  }
}

TEST(PiecesTest, ASortEndsWithItsRun) {
  constexpr size_t kItems = 100'000;
  std::vector<uint32_t> items = RandomNumbers(kItems), spare(kItems);
  size_t all = 0;
  SortInPieces(items.data(), spare.data(), kItems, [&](uint32_t a, uint32_t b) {
    ++all;
    return a < b;
  });
  // In its first run, and in its last merge.
  for (const size_t last : {size_t{1}, all - 50'000}) {
    std::atomic<bool> terminate = false;
    const StopSignal signal(&terminate, std::nullopt);
    const StopScope scope(&signal);
    items = RandomNumbers(kItems);
    size_t count = 0;
    EXPECT_EQ(SortInPieces(items.data(), spare.data(), kItems,
                           [&](uint32_t a, uint32_t b) {
                             terminate = ++count >= last;
                             return a < b;
                           }),
              nullptr);
    EXPECT_LT(count, all);
  }
}

}  // namespace
}  // namespace tenon
