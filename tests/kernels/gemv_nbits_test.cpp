#include "kernels/gemv_nbits.h"

#include <string>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

enum class Zeros { kNone, kPacked, kFloats };

struct NBitsCase {
  size_t n, k, bits, block_size;
  Zeros zeros;
};

const NBitsCase kCases[] = {
    {1, 1, 4, 16, Zeros::kNone},     {3, 16, 4, 16, Zeros::kPacked},
    {5, 33, 4, 16, Zeros::kFloats},  {4, 64, 4, 32, Zeros::kNone},
    {9, 97, 4, 32, Zeros::kPacked},  {7, 300, 4, 128, Zeros::kFloats},
    {1, 20, 2, 16, Zeros::kNone},    {6, 96, 2, 32, Zeros::kPacked},
    {4, 130, 2, 64, Zeros::kFloats}, {2, 16, 8, 16, Zeros::kNone},
    {8, 257, 8, 32, Zeros::kPacked}, {13, 64, 8, 64, Zeros::kFloats},
    {0, 32, 4, 32, Zeros::kPacked},
};

unsigned ElementAt(const uint8_t* packed, size_t i, size_t bits) {
  return packed[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
}

void CheckCase(const NBitsCase& c, bool with_bias) {
  SCOPED_TRACE(std::to_string(c.bits) + " bits, " + std::to_string(c.n) + " x " +
               std::to_string(c.k) + " in blocks of " + std::to_string(c.block_size));
  Random random(c.n * 31 + c.k * 7 + c.bits);
  NBitsMatrix w;
  w.k = c.k;
  w.bits = c.bits;
  w.block_size = c.block_size;
  const size_t blocks = w.blocks(), row_bytes = blocks * c.block_size * c.bits / 8;
  w.zero_stride = (blocks * c.bits + 7) / 8;
  std::vector<uint8_t> data(c.n * row_bytes), zeros(c.n * w.zero_stride);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random.Next());
  for (uint8_t& byte : zeros) byte = static_cast<uint8_t>(random.Next());
  const std::vector<float> scales = random.Floats(c.n * blocks, -1, 1),
                           float_zeros = random.Floats(c.n * blocks, 0, 10),
                           x = random.Floats(c.k, -1, 1), bias = random.Floats(c.n, -1, 1);
  w.data = data.data();
  w.scales = scales.data();
  if (c.zeros == Zeros::kPacked) w.zero_points = zeros.data();
  if (c.zeros == Zeros::kFloats) w.float_zero_points = float_zeros.data();
  std::vector<float> arranged(ArrangedNBitsSize(w)), y(c.n + 1, 7.0f);
  ArrangeNBitsVector(w, x.data(), arranged.data());
  const size_t middle = c.n / 3;
  const float* added = with_bias ? bias.data() : nullptr;
  RunNBitsGemv(w, arranged.data(), added, 0, middle, y.data());
  RunNBitsGemv(w, arranged.data(), added, middle, c.n - middle, y.data());
  EXPECT_EQ(y[c.n], 7.0f);
  for (size_t j = 0; j < c.n; ++j) {
    double sum = with_bias ? bias[j] : 0, magnitude = 1;
    for (size_t p = 0; p < c.k; ++p) {
      const size_t block = p / c.block_size;
      double zero = 1u << (c.bits - 1);
      if (c.zeros == Zeros::kPacked) {
        zero = ElementAt(zeros.data() + j * w.zero_stride, block, c.bits);
      } else if (c.zeros == Zeros::kFloats) {
        zero = float_zeros[j * blocks + block];
      }
      const double element = ElementAt(data.data() + j * row_bytes, p, c.bits);
      const double scale = scales[j * blocks + block];
      sum += x[p] * (element - zero) * scale;
      magnitude += std::abs(x[p] * scale) * (element + std::abs(zero));
    }
    EXPECT_NEAR(y[j], sum, 1e-6 * magnitude) << "element " << j;
  }
}

class GemvNBitsTest : public TargetTest {};

TEST_F(GemvNBitsTest, MatchesReferenceAtEveryWidthOnEveryTarget) {
  OnEveryTarget([] {
    for (const NBitsCase& c : kCases) {
      CheckCase(c, false);
      CheckCase(c, true);
    }
  });
}

}  // namespace
}  // namespace tenon::kernels
