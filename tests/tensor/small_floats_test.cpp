#include "tensor/small_floats.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace tenon {
namespace {

// The value of a binary16 pattern, computed from the definition.
double HalfValue(uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const double fraction = bits & 1023;
  double magnitude;
  if (exponent == 31) {
    magnitude = fraction == 0 ? INFINITY : NAN;
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, -24);
  } else {
    magnitude = std::ldexp(1024 + fraction, exponent - 25);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

TEST(Float16Test, EveryPatternConvertsExactlyAndBack) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const Float16 half = Float16::FromBits(static_cast<uint16_t>(bits));
    const float value = static_cast<float>(half);
    const double expected = HalfValue(half.bits);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(value));
      EXPECT_TRUE(std::isnan(static_cast<float>(Float16(value))));
      continue;
    }
    EXPECT_EQ(value, expected) << bits;
    EXPECT_EQ(std::signbit(value), std::signbit(expected)) << bits;
    EXPECT_EQ(Float16(value).bits, half.bits);
  }
}

TEST(Float16Test, RoundsToNearestEven) {
  for (uint32_t bits = 0; bits < 0x7bff; ++bits) {
    const double low = HalfValue(static_cast<uint16_t>(bits));
    const double high = HalfValue(static_cast<uint16_t>(bits + 1));
    const auto middle = static_cast<float>((low + high) / 2);
    const uint32_t even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(Float16(middle).bits, even);
    EXPECT_EQ(Float16(std::nextafter(middle, 0.0f)).bits, bits);
    EXPECT_EQ(Float16(std::nextafter(middle, INFINITY)).bits, bits + 1);
  }
  EXPECT_EQ(Float16(65519.0f).bits, 0x7bff);
  EXPECT_EQ(Float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(Float16(-INFINITY).bits, 0xfc00);
}

TEST(Bfloat16Test, RoundsToNearestEvenAndKeepsNan) {
  for (uint32_t bits = 0; bits < 0x7f80; bits += 7) {
    const float low = std::bit_cast<float>(bits << 16);
    const float middle = std::bit_cast<float>((bits << 16) | 0x8000);
    EXPECT_EQ(static_cast<float>(Bfloat16(low)), low);
    EXPECT_EQ(Bfloat16(middle).bits, bits % 2 == 0 ? bits : bits + 1);
  }
  EXPECT_TRUE(std::isnan(static_cast<float>(Bfloat16(std::bit_cast<float>(0x7f800001u)))));
}

}  // namespace
}  // namespace tenon
