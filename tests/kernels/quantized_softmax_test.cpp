#include "kernels/elementwise/quantized_softmax.h"

#include <cmath>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

class QuantizedSoftmaxTest : public TargetTest {};

struct Case {
  float x_scale, y_scale;
  int32_t y_zero;
  bool is_signed;
};
constexpr Case kCases[] = {
    {0.06f, 1.0f / 256, 0, false}, {0.2f, 1.0f / 255, 0, false}, {1.5f, 1.0f / 256, -128, true},
    {0.01f, 0.0001f, 7, false},    {0.0f, 1.0f / 64, -20, true}, {90.0f, 0.5f, 3, false},
};

// Element i of the line, in double precision, before rounding.
double Expected(const std::vector<uint8_t>& line, size_t i, const Case& c) {
  const auto value = [&](uint8_t byte) {
    return c.is_signed ? int{static_cast<int8_t>(byte)} : int{byte};
  };
  int most = -128;
  for (const uint8_t byte : line) most = std::max(most, value(byte));
  double sum = 0;
  for (const uint8_t byte : line) sum += std::exp((value(byte) - most) * double{c.x_scale});
  const double power = std::exp((value(line[i]) - most) * double{c.x_scale});
  return power / sum / double{c.y_scale} + c.y_zero;
}

// The result is that number rounded, where it is no tie but for the precision of floats.
void ExpectRounded(uint8_t byte, double expected, bool is_signed) {
  const double least = is_signed ? -128 : 0;
  const double got = is_signed ? static_cast<int8_t>(byte) : byte;
  const double kept = std::clamp(expected, least, least + 255);
  EXPECT_LE(std::abs(got - kept), 0.5 + 1e-4) << "expected " << expected;
}

TEST_F(QuantizedSoftmaxTest, RoundsEveryElement) {
  OnEveryTarget([] {
    Random random(5);
    for (const Case& c : kCases) {
      const auto type = c.is_signed ? QuantizedType::kInt8 : QuantizedType::kUint8;
      const QuantizedSoftmax softmax(c.x_scale, type, c.y_scale, c.y_zero, type);
      for (const size_t n : {1, 2, 7, 16, 31, 64, 65, 200}) {
        for (const size_t columns : {1, 3, 16, 37}) {
          // All lines lie side by side, in rows that are longer than the lines are many.
          const size_t stride = columns + 5;
          std::vector<uint8_t> x(n * stride);
          // Some lines have few different elements.
          const size_t range = columns % 2 == 0 ? 256 : 4;
          for (uint8_t& byte : x) byte = static_cast<uint8_t>(250 + random.Below(range));
          std::vector<uint8_t> y(x.size(), 77);
          SoftmaxQuantizedColumns(softmax, x.data(), n, stride, columns, y.data());
          for (size_t column = 0; column < stride; ++column) {
            std::vector<uint8_t> line(n), alone(n + 1, 99);
            for (size_t i = 0; i < n; ++i) line[i] = x[i * stride + column];
            SoftmaxQuantizedLine(softmax, line.data(), n, alone.data());
            ASSERT_EQ(alone[n], 99);
            for (size_t i = 0; i < n; ++i) {
              const uint8_t got = y[i * stride + column];
              ExpectRounded(alone[i], Expected(line, i, c), c.is_signed);
              if (column < columns) {
                ExpectRounded(got, Expected(line, i, c), c.is_signed);
              } else {
                EXPECT_EQ(got, 77);
              }
            }
            std::vector<uint8_t> in_place = line;
            SoftmaxQuantizedLine(softmax, in_place.data(), n, in_place.data());
            EXPECT_TRUE(std::equal(in_place.begin(), in_place.end(), alone.begin()));
          }
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::kernels
