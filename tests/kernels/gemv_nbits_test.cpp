#include "kernels/gemm/gemv_nbits.h"

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
  const UnalignedFloats stored(scales);
  w.scales = stored.data();
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

// Against the matrix unpacked and x rounded to 8 bits in each block, in double.
void CheckBytesCase(const NBitsCase& c) {
  SCOPED_TRACE(std::to_string(c.n) + " x " + std::to_string(c.k) + " in blocks of " +
               std::to_string(c.block_size));
  Random random(c.n * 17 + c.k);
  NBitsMatrix w;
  w.k = c.k;
  w.bits = c.bits;
  w.block_size = c.block_size;
  const size_t blocks = w.blocks(), padded = blocks * c.block_size;
  w.zero_stride = (blocks * c.bits + 7) / 8;
  std::vector<uint8_t> data(c.n * padded * c.bits / 8), zeros(c.n * w.zero_stride);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random.Next());
  for (uint8_t& byte : zeros) byte = static_cast<uint8_t>(random.Next());
  // Some vectors are multiplied together, and one alone.
  constexpr size_t kVectors = 5;
  const std::vector<float> scales = random.Floats(c.n * blocks, -1, 1),
                           x = random.Floats(kVectors * c.k, -1, 1),
                           bias = random.Floats(c.n, -1, 1);
  w.data = data.data();
  const UnalignedFloats stored(scales);
  w.scales = stored.data();
  if (c.zeros == Zeros::kPacked) w.zero_points = zeros.data();
  std::vector<float> row(padded), y(kVectors * c.n);
  for (size_t j = 0; j < c.n; ++j) {
    UnpackNBitsRow(w, j, row.data());
    for (size_t p = 0; p < c.k; ++p) {
      const size_t block = p / c.block_size;
      double zero = 1u << (c.bits - 1);
      if (w.zero_points) zero = ElementAt(zeros.data() + j * w.zero_stride, block, c.bits);
      const double element = ElementAt(data.data() + j * padded * c.bits / 8, p, c.bits);
      ASSERT_NEAR(row[p], (element - zero) * scales[j * blocks + block], 1e-5);
    }
  }
  if (!HasInt8NBitsGemm(w)) return;
  for (const NBitsParts parts : {NBitsParts::kOne, NBitsParts::kThree}) {
    const size_t bytes = ArrangedNBitsBytes(w, parts);
    std::vector<std::byte> memory(kVectors * bytes + 64);
    std::byte* arranged = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
    for (size_t i = 0; i < kVectors; ++i) {
      ArrangeNBitsBytes(w, parts, x.data() + i * c.k, arranged + i * bytes);
    }
    const size_t middle = c.n / 2;
    RunInt8NBitsGemm(w, parts, arranged, kVectors, bias.data(), 0, middle, y.data(), c.n);
    RunInt8NBitsGemm(w, parts, arranged, kVectors, bias.data(), middle, c.n - middle, y.data(),
                     c.n);
    const double steps = parts == NBitsParts::kOne ? 127 : 127 << 14;
    for (size_t j = 0; j < c.n; ++j) {
      UnpackNBitsRow(w, j, row.data());
      for (size_t i = 0; i < kVectors; ++i) {
        double sum = bias[j], slack = 1e-5;
        for (size_t p = 0; p < c.k; ++p) {
          sum += double{x[i * c.k + p]} * row[p];
          slack += std::abs(row[p]) * 0.5 / steps * 1.01;  // half a step of x, at most 1
          slack += std::abs(row[p]) * 1e-6;
        }
        EXPECT_NEAR(y[i * c.n + j], sum, slack) << "vector " << i << ", element " << j;
      }
    }
  }
}

class GemvNBitsTest : public TargetTest {};

TEST_F(GemvNBitsTest, UnpacksAndRoundsToBytesOnEveryTarget) {
  OnEveryTarget([] {
    for (const NBitsCase& c : kCases) {
      if (c.zeros != Zeros::kFloats) CheckBytesCase(c);
    }
    for (const size_t k : {1, 31, 32, 33, 64, 96, 127, 500, 1024}) {
      for (const size_t block : {32, 64, 256}) {
        CheckBytesCase({5, k, 4, block, Zeros::kNone});
        CheckBytesCase({4, k, 4, block, Zeros::kPacked});
      }
    }
  });
}

// y: [m, n], of m vectors x.
std::vector<float> Multiply(const NBitsMatrix& w, NBitsParts parts, size_t m,
                            const std::vector<float>& x, size_t n) {
  const size_t bytes = ArrangedNBitsBytes(w, parts);
  std::vector<std::byte> memory(m * bytes + 64);
  std::byte* arranged = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
  for (size_t i = 0; i < m; ++i) {
    ArrangeNBitsBytes(w, parts, x.data() + i * w.k, arranged + i * bytes);
  }
  std::vector<float> y(m * n);
  RunInt8NBitsGemm(w, parts, arranged, m, nullptr, 0, n, y.data(), n);
  return y;
}

TEST_F(GemvNBitsTest, RoundsWhatBytesHoldWithoutLossOnEveryTarget) {
  OnEveryTarget([] {
    NBitsMatrix w;
    w.k = w.block_size = 32;
    const std::vector<uint8_t> data(16, 0x9a);  // elements 10, 9, 10, 9, ...
    const float scale = 2;
    w.data = data.data();
    w.scales = &scale;
    if (!HasInt8NBitsGemm(w)) return;
    std::vector<float> x(32);
    double expected = 0;
    for (size_t i = 0; i < 32; ++i) {
      x[i] = static_cast<float>(static_cast<int>(i * 8) - 121);  // up to 127
      expected += x[i] * (i % 2 ? 1 : 2) * scale;
    }
    EXPECT_NEAR(Multiply(w, NBitsParts::kOne, 1, x, 1)[0], expected, 1e-3 * std::abs(expected));
  });
}

// Sums that are partly of 16 bits fit these.
TEST_F(GemvNBitsTest, GreatestSumsAreExactOnEveryTarget) {
  OnEveryTarget([] {
    for (const NBitsParts parts : {NBitsParts::kOne, NBitsParts::kThree}) {
      for (const size_t k : {32, 64, 128, 256}) {
        NBitsMatrix w;
        w.k = w.block_size = k;
        w.zero_stride = 1;
        const std::vector<uint8_t> data(k / 2, 0xff), zeros(1, 0);
        const float scale = 1;
        w.data = data.data();
        w.scales = &scale;
        w.zero_points = zeros.data();
        if (!HasInt8NBitsGemm(w)) return;
        // All parts of the latter are of the same sign, and the middle one as great as possible.
        const int most = parts == NBitsParts::kOne ? 127 : 127 << 14;
        for (const int element :
             {most, -most, parts == NBitsParts::kOne ? 1 : (126 << 14) + 8191}) {
          std::vector<float> x(k, static_cast<float>(element));
          x[0] = static_cast<float>(most);
          const int64_t sum = 15 * (most + static_cast<int64_t>(k - 1) * element);
          EXPECT_NEAR(Multiply(w, parts, 1, x, 1)[0], sum, 1e-6 * std::abs(double(sum)));
        }
      }
    }
  });
}

TEST_F(GemvNBitsTest, TellsVectorsThatAreNotFiniteOnEveryTarget) {
  OnEveryTarget([] {
    NBitsMatrix w;
    w.k = w.block_size = 32;
    const std::vector<uint8_t> data(16, 0x9a);
    const float scale = 2;
    w.data = data.data();
    w.scales = &scale;
    if (!HasInt8NBitsGemm(w)) return;
    for (const NBitsParts parts : {NBitsParts::kOne, NBitsParts::kThree}) {
      for (const float special : {kInf, kNan}) {
        std::vector<float> x(32, 1.0f);
        x[7] = special;
        EXPECT_FALSE(std::isfinite(Multiply(w, parts, 1, x, 1)[0]));
      }
    }
  });
}

// Several vectors have the bits of each alone, and all targets that round have the same.
TEST_F(GemvNBitsTest, BitsDependOnNoOtherVectorAndNoTarget) {
  constexpr size_t kM = 6, kN = 9, kK = 500;
  for (const size_t block : {32, 64, 128}) {
    Random random(block);
    NBitsMatrix w;
    w.k = kK;
    w.block_size = block;
    std::vector<uint8_t> data(kN * w.blocks() * block / 2);
    for (uint8_t& byte : data) byte = static_cast<uint8_t>(random.Next());
    const std::vector<float> x = random.Floats(kM * kK, -1, 1),
                             scales = random.Floats(kN * w.blocks(), -1, 1);
    w.data = data.data();
    w.scales = scales.data();
    for (const NBitsParts parts : {NBitsParts::kOne, NBitsParts::kThree}) {
      std::vector<std::vector<float>> results;
      OnEveryTarget([&] {
        if (!HasInt8NBitsGemm(w)) return;
        results.push_back(Multiply(w, parts, kM, x, kN));
        for (size_t i = 0; i < kM; ++i) {
          const std::vector<float> alone(x.begin() + i * kK, x.begin() + (i + 1) * kK),
              row(results.back().begin() + i * kN, results.back().begin() + (i + 1) * kN);
          EXPECT_EQ(Multiply(w, parts, 1, alone, kN), row);
        }
      });
      for (const std::vector<float>& y : results) EXPECT_EQ(y, results[0]);
    }
  }
}

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
