#include "kernels/elementwise/convert.h"

#include <cstring>
#include <limits>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using ConvertTest = TargetTest;

// The value of a binary16, from its definition.
double Float16Value(uint16_t half) {
  const int exponent = half >> 10 & 31, mantissa = half & 1023;
  const double sign = half & 0x8000 ? -1 : 1;
  if (exponent == 31) {
    return mantissa ? std::numeric_limits<double>::quiet_NaN()
                    : sign * std::numeric_limits<double>::infinity();
  }
  return exponent == 0 ? sign * std::ldexp(mantissa, -24)
                       : sign * std::ldexp(1024 + mantissa, exponent - 25);
}

TEST_F(ConvertTest, EveryFloat16ConvertsExactlyAndBack) {
  std::vector<uint16_t> x(65536);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i);
  OnEveryTarget([&] {
    std::vector<float> y(x.size());
    Float16ToFloat(x.data(), y.data(), x.size());
    std::vector<uint16_t> back(x.size());
    FloatToFloat16(y.data(), back.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = Float16Value(x[i]);
      ASSERT_TRUE(std::isnan(expected) ? std::isnan(y[i]) : y[i] == expected) << i;
      ASSERT_EQ(std::signbit(y[i]), (x[i] & 0x8000) != 0);
      ASSERT_EQ(back[i], std::isnan(expected) ? x[i] | 0x200 : x[i]) << i;
    }
  });
}

// The binary16 nearest to `value`, ties to even, by search over neighbours.
uint16_t NearestFloat16(float value) {
  const uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  const double magnitude = std::abs(static_cast<double>(value));
  if (magnitude >= 65520) return sign | 0x7c00;
  uint16_t low = 0, high = 0x7c00;
  while (high - low > 1) {
    const uint16_t middle = static_cast<uint16_t>((low + high) / 2);
    (Float16Value(middle) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - Float16Value(low);
  const double above = (high == 0x7c00 ? 65536 : Float16Value(high)) - magnitude;
  const bool up = above < below || (above == below && (low & 1));
  return sign | (up ? high : low);
}

TEST_F(ConvertTest, FloatRoundsToTheNearest16BitNumber) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 65'521) {
    x.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  // Ties, and numbers next to them.
  for (uint32_t half = 0; half < 0x7c00; half += 7) {
    const float middle = static_cast<float>((Float16Value(half) + Float16Value(half + 1)) / 2);
    for (const float v : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
      x.push_back(v);
      x.push_back(-v);
    }
  }
  OnEveryTarget([&] {
    std::vector<uint16_t> half(x.size()), brain(x.size());
    FloatToFloat16(x.data(), half.data(), x.size());
    FloatToBfloat16(x.data(), brain.data(), x.size());
    std::vector<float> from_brain(x.size());
    Bfloat16ToFloat(brain.data(), from_brain.data(), x.size());
    for (size_t i = 0; i < x.size(); ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(Float16Value(half[i])) && std::isnan(from_brain[i]));
        continue;
      }
      ASSERT_EQ(half[i], NearestFloat16(x[i])) << x[i];
      // Nearest: at most half the distance to either neighbour; even where it is half.
      const uint32_t bits = Bits(x[i]), rest = bits & 0xffff;
      const uint32_t up = rest > 0x8000 || (rest == 0x8000 && (bits >> 16 & 1));
      ASSERT_EQ(brain[i], (bits >> 16) + up) << x[i];
    }
  });
}

constexpr size_t kSizes[kCastTypeCount] = {4, 8, 1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 2};

// Writes and reads small integers in any type.
void Write(CastType type, void* p, size_t i, int value) {
  switch (type) {
    case CastType::kFloat:
      static_cast<float*>(p)[i] = static_cast<float>(value);
      return;
    case CastType::kDouble:
      static_cast<double*>(p)[i] = value;
      return;
    case CastType::kFloat16: {
      static_cast<uint16_t*>(p)[i] = NearestFloat16(static_cast<float>(value));
      return;
    }
    case CastType::kBfloat16:
      static_cast<uint16_t*>(p)[i] = static_cast<uint16_t>(Bits(static_cast<float>(value)) >> 16);
      return;
    default: {
      const int64_t wide = type == CastType::kBool ? value != 0 : value;
      const size_t size = kSizes[static_cast<size_t>(type)];
      std::memcpy(static_cast<uint8_t*>(p) + i * size, &wide, size);  // little-endian
    }
  }
}

TEST_F(ConvertTest, EveryPairOfTypesConvertsSmallIntegers) {
  OnEveryTarget([] {
    for (size_t from = 0; from < kCastTypeCount; ++from) {
      for (size_t to = 0; to < kCastTypeCount; ++to) {
        for (const size_t n : {0, 1, 5, 16, 17, 300, 600}) {
          std::vector<uint8_t> x(n * 8 + 8), y(n * 8 + 8, 0xee), expected(n * 8 + 8, 0xee);
          for (size_t i = 0; i < n; ++i) {
            const int value = static_cast<int>(i % 100);
            const CastType from_type = static_cast<CastType>(from);
            Write(from_type, x.data(), i, value);
            Write(static_cast<CastType>(to), expected.data(), i,
                  from_type == CastType::kBool ? value != 0 : value);
          }
          FindCast(static_cast<CastType>(from), static_cast<CastType>(to))(x.data(), y.data(), n);
          ASSERT_EQ(y, expected) << "from " << from << " to " << to << ", n " << n;
        }
      }
    }
  });
}

TEST_F(ConvertTest, TruncatesWrapsAndKeepsNanTrue) {
  OnEveryTarget([] {
    const float x[] = {-1.9f, 1.9f, -0.5f, 300.7f};
    int32_t wide[4];
    uint8_t narrow[4], flag[4];
    FindCast(CastType::kFloat, CastType::kInt32)(x, wide, 4);
    FindCast(CastType::kFloat, CastType::kUint8)(x, narrow, 4);
    EXPECT_EQ(wide[0], -1);
    EXPECT_EQ(wide[1], 1);
    EXPECT_EQ(wide[2], 0);
    EXPECT_EQ(narrow[0], 255);
    EXPECT_EQ(narrow[3], 300 - 256);
    const float special[] = {0.0f, -0.0f, std::numeric_limits<float>::quiet_NaN(), 1e-40f};
    FindCast(CastType::kFloat, CastType::kBool)(special, flag, 4);
    EXPECT_EQ(flag[0] + flag[1], 0);
    EXPECT_EQ(flag[2] + flag[3], 2);
    const int64_t large = int64_t{1} << 40 | 7;
    FindCast(CastType::kInt64, CastType::kInt32)(&large, wide, 1);
    EXPECT_EQ(wide[0], 7);
  });
}

}  // namespace
}  // namespace tenon::kernels
