#include "kernels/elementwise/quantize.h"

#include <limits>

#include "kernels/elementwise/int8_table.h"
#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

class QuantizeTest : public TargetTest {};

constexpr size_t kSizes[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 100};

template <class T>
void CheckQuantize(QuantizedType type, size_t n, bool per_element) {
  Random random(n + 1);
  std::vector<float> x = random.Floats(n, -70000, 70000);
  if (n > 3) {
    x[0] = std::numeric_limits<float>::infinity();
    x[1] = -x[0];
    x[2] = std::nanf("");
    x[3] = -0.0f;
  }
  const size_t count = per_element ? n : 1;
  std::vector<float> scales(count);
  std::vector<int32_t> zero_points(count);
  for (size_t i = 0; i < count; ++i) {
    scales[i] = random.Uniform(0.5f, 400.0f);
    zero_points[i] = static_cast<int32_t>(random.Below(100));
  }
  std::vector<T> y(n + 1, T{77});
  Quantize(x.data(), n, {scales.data(), zero_points.data(), per_element}, type, y.data());
  ASSERT_EQ(y[n], T{77});
  std::vector<float> back(n + 1, 5.0f);
  Dequantize(y.data(), n, {scales.data(), zero_points.data(), per_element}, type, back.data());
  ASSERT_EQ(back[n], 5.0f);
  for (size_t i = 0; i < n; ++i) {
    const size_t at = per_element ? i : 0;
    const double rounded = std::nearbyint(static_cast<double>(x[i] / scales[at])) + zero_points[at];
    const double least = std::numeric_limits<T>::min(), most = std::numeric_limits<T>::max();
    const double expected = std::isnan(rounded) ? least : std::clamp(rounded, least, most);
    ASSERT_EQ(static_cast<double>(y[i]), expected) << i << " of " << n << ", x " << x[i];
    ASSERT_EQ(back[i], static_cast<float>(y[i] - zero_points[at]) * scales[at]);
  }
}

TEST_F(QuantizeTest, RoundsAndSaturatesEveryElement) {
  OnEveryTarget([] {
    for (const size_t n : kSizes) {
      for (const bool per_element : {false, true}) {
        CheckQuantize<uint8_t>(QuantizedType::kUint8, n, per_element);
        CheckQuantize<int8_t>(QuantizedType::kInt8, n, per_element);
        CheckQuantize<uint16_t>(QuantizedType::kUint16, n, per_element);
        CheckQuantize<int16_t>(QuantizedType::kInt16, n, per_element);
      }
    }
  });
}

TEST_F(QuantizeTest, RoundsHalvesToEven) {
  OnEveryTarget([] {
    const float x[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f};
    const float scale = 1;
    int8_t y[5];
    Quantize(x, 5, {&scale, nullptr, false}, QuantizedType::kInt8, y);
    const int8_t expected[] = {0, 2, 2, 0, -2};
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(y[i], expected[i]);
  });
}

TEST_F(QuantizeTest, DequantizesWideIntegers) {
  OnEveryTarget([] {
    const int32_t x[] = {INT32_MIN, -1, 0, 7, INT32_MAX};
    const float scale = 0.5f;
    float y[5];
    Dequantize(x, 5, {&scale, nullptr, false}, QuantizedType::kInt32, y);
    for (size_t i = 0; i < 5; ++i) EXPECT_EQ(y[i], static_cast<float>(x[i]) * 0.5f);
  });
}

TEST_F(QuantizeTest, TheRangeHoldsZero) {
  OnEveryTarget([] {
    for (const size_t n : kSizes) {
      Random random(n);
      for (const float low : {-3.0f, 1.0f, -9.0f}) {
        const std::vector<float> x = random.Floats(n, low, low + 5);
        float least = 0, most = 0;
        for (const float v : x) {
          least = std::min(least, v);
          most = std::max(most, v);
        }
        const FloatRange range = RangeWithZero(x.data(), n);
        EXPECT_EQ(range.min, least);
        EXPECT_EQ(range.max, most);
      }
    }
  });
}

TEST_F(QuantizeTest, LooksUpEveryInteger) {
  uint8_t table[256], x[600];
  for (size_t i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i * 167 + 13);
  for (size_t i = 0; i < 600; ++i) x[i] = static_cast<uint8_t>(i * 89 + 5);
  OnEveryTarget([&] {
    for (const size_t n : {size_t{0}, size_t{1}, size_t{15}, size_t{16}, size_t{77}, size_t{600}}) {
      std::vector<uint8_t> y(n + 1, 99);
      LookUpInt8(table, x, n, y.data());
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], table[x[i]]) << i << " of " << n;
      EXPECT_EQ(y[n], 99);
      // The same in rows with a gap of two.
      for (const size_t row : {size_t{1}, size_t{5}, size_t{70}}) {
        const size_t rows = n / row, stride = row + 2;
        std::vector<uint8_t> apart(rows * stride + 1, 99);
        LookUpInt8Rows(table, x, row, rows, row, apart.data(), stride);
        for (size_t i = 0; i < apart.size(); ++i) {
          const size_t r = i / stride, k = i % stride;
          ASSERT_EQ(apart[i], r < rows && k < row ? table[x[r * row + k]] : 99) << i;
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::kernels
