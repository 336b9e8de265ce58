#include "base/arithmetic.h"

#include <gtest/gtest.h>

#include <limits>
#include <vector>

namespace tenon {
namespace {

constexpr int64_t kMin64 = std::numeric_limits<int64_t>::min();
constexpr int64_t kMax64 = std::numeric_limits<int64_t>::max();
constexpr size_t kMaxSize = std::numeric_limits<size_t>::max();

std::optional<int64_t> Exact(__int128 value) {
  if (value < kMin64 || value > kMax64) return std::nullopt;
  return static_cast<int64_t>(value);
}

TEST(ArithmeticTest, SumsAndProductsAreExactOrAbsent) {
  const std::vector<int64_t> samples = {
      kMin64, kMin64 + 1,       -(int64_t{1} << 32), -3,         -1,         0,     1,
      2,      int64_t{1} << 31, 3037000500,          kMax64 / 2, kMax64 - 1, kMax64};
  for (int64_t a : samples) {
    for (int64_t b : samples) {
      EXPECT_EQ(CheckedAdd(a, b), Exact(static_cast<__int128>(a) + b)) << a << " + " << b;
      EXPECT_EQ(CheckedMul(a, b), Exact(static_cast<__int128>(a) * b)) << a << " * " << b;
    }
  }
}

TEST(ArithmeticTest, UnsignedSizesDoNotWrap) {
  EXPECT_EQ(CheckedAdd(kMaxSize, size_t{1}), std::nullopt);
  EXPECT_EQ(CheckedAdd(kMaxSize, size_t{0}), kMaxSize);
  constexpr int kBits = std::numeric_limits<size_t>::digits;
  constexpr size_t kRoot = size_t{1} << (kBits / 2);
  EXPECT_EQ(CheckedMul(kRoot, kRoot), std::nullopt);
  EXPECT_EQ(CheckedMul(kRoot, kRoot / 2), size_t{1} << (kBits - 1));
  static_assert(!CheckedAdd<uint8_t>(200, 100).has_value());
}

TEST(ArithmeticTest, ProductOfDimensions) {
  struct Case {
    std::vector<int64_t> factors;
    std::optional<int64_t> expected;
  };
  const Case cases[] = {
      {{}, 1},
      {{7}, 7},
      {{2, 3, 5}, 30},
      {{2, 0, 5}, 0},
      {{kMax64, kMax64, 0}, 0},
      {{0, kMax64, kMax64}, 0},
      {{kMax64, 2}, std::nullopt},
      {{3, -1}, std::nullopt},
      {{0, -1}, std::nullopt},
      {{-1, -1}, std::nullopt},
  };
  for (const Case& c : cases) {
    EXPECT_EQ(CheckedProduct<int64_t>(c.factors), c.expected) << testing::PrintToString(c.factors);
  }
}

TEST(ArithmeticTest, CeilDivAndRoundUp) {
  struct Case {
    size_t a, b, quotient, rounded;
  };
  for (const Case& c : {Case{0, 4, 0, 0}, Case{1, 4, 1, 4}, Case{4, 4, 1, 4}, Case{5, 4, 2, 8},
                        Case{7, 1, 7, 7}, Case{kMaxSize, kMaxSize, 1, kMaxSize}}) {
    EXPECT_EQ(CeilDiv(c.a, c.b), c.quotient) << c.a << " / " << c.b;
    EXPECT_EQ(RoundUp(c.a, c.b), c.rounded) << c.a << " to " << c.b;
    EXPECT_EQ(CheckedRoundUp(c.a, c.b), c.rounded) << c.a << " to " << c.b;
  }
  EXPECT_EQ(CeilDiv(kMaxSize, size_t{2}), kMaxSize / 2 + 1);
  EXPECT_EQ(CheckedRoundUp(kMaxSize, size_t{64}), std::nullopt);
}

}  // namespace
}  // namespace tenon
