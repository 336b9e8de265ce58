#include "kernels/gemm/gemm_nbits.h"

#include <algorithm>
#include <string>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

struct PanelCase {
  size_t m, n, k, bits, block_size;
  bool has_zeros;
};

unsigned ElementAt(const uint8_t* packed, size_t i, size_t bits) {
  return packed[i * bits / 8] >> (i * bits % 8) & ((1u << bits) - 1);
}

// x rounded to 8, 16 or 22 bits in each block, in double.
std::vector<double> Rounded(const float* x, size_t k, size_t block_size, NBitsParts parts) {
  const float greatest = parts == NBitsParts::kOne   ? 127
                         : parts == NBitsParts::kTwo ? 32639
                                                     : 2097151;
  std::vector<double> rounded(k);
  for (size_t first = 0; first < k; first += block_size) {
    const size_t end = std::min(k, first + block_size);
    float most = 0;
    for (size_t p = first; p < end; ++p) most = std::max(most, std::abs(x[p]));
    const float scale = most / greatest, inverse = scale > 0 ? 1 / scale : 0;
    for (size_t p = first; p < end; ++p) {
      rounded[p] = double{std::nearbyint(x[p] * inverse)} * scale;
    }
  }
  return rounded;
}

// y: [m, n].
void RunPanels(const NBitsMatrix& w, NBitsParts parts, size_t m, const std::vector<float>& x,
               const float* bias, size_t n, float* y) {
  const size_t row_memory = Int8NBitsRows::Bytes(w, parts, m);
  std::vector<std::byte> memory(row_memory + NBitsPanelBytes(w) + 64, std::byte{0x5a});
  std::byte* aligned = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
  const Int8NBitsRows rows(w, parts, m, aligned);
  for (size_t i = 0; i < m; ++i) rows.Set(w, i, x.data() + i * w.k);
  for (size_t first = 0; first < n; first += kNBitsPanelColumns) {
    RunNBitsPanel(w, rows, bias, first, y, n, aligned + row_memory);
  }
}

void CheckCase(const PanelCase& c, NBitsParts parts) {
  SCOPED_TRACE(std::to_string(c.bits) + " bits, " + std::to_string(c.m) + " x " +
               std::to_string(c.n) + " x " + std::to_string(c.k) + " in blocks of " +
               std::to_string(c.block_size));
  Random random(c.m * 131 + c.n * 31 + c.k * 7 + c.bits);
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
                           x = random.Floats(c.m * c.k, -1, 1), bias = random.Floats(c.n, -1, 1);
  w.data = data.data();
  const UnalignedFloats stored(scales);
  w.scales = stored.data();
  if (c.has_zeros) w.zero_points = zeros.data();
  if (!HasInt8NBitsPanels(w, parts)) return;

  std::vector<float> y(c.m * c.n + 1, 7.0f);
  RunPanels(w, parts, c.m, x, bias.data(), c.n, y.data());
  EXPECT_EQ(y.back(), 7.0f);
  for (size_t i = 0; i < c.m; ++i) {
    const std::vector<double> a = Rounded(x.data() + i * c.k, c.k, c.block_size, parts);
    for (size_t j = 0; j < c.n; ++j) {
      double sum = bias[j], magnitude = 1;
      for (size_t p = 0; p < c.k; ++p) {
        const size_t block = p / c.block_size;
        const double zero = c.has_zeros ? ElementAt(zeros.data() + j * w.zero_stride, block, c.bits)
                                        : 1u << (c.bits - 1);
        const double element = ElementAt(data.data() + j * row_bytes, p, c.bits) - zero;
        sum += a[p] * element * scales[j * blocks + block];
        magnitude += std::abs(a[p] * element * scales[j * blocks + block]);
      }
      EXPECT_NEAR(y[i * c.n + j], sum, 1e-6 * magnitude) << "row " << i << ", column " << j;
    }
  }
}

class GemmNBitsTest : public TargetTest {};

// What a form takes, at least.
size_t FewestRows() { return MostInt8NBitsVectors(NBitsParts::kOne) + 1; }

TEST_F(GemmNBitsTest, MatchesReferenceOnEveryTarget) {
  OnEveryTarget([] {
    for (const size_t bits : {2, 4, 8}) {
      for (const size_t block : {16, 32, 64, 128}) {
        for (const size_t k : {1, 16, 33, 96, 300}) {
          for (const NBitsParts parts : {NBitsParts::kOne, NBitsParts::kTwo, NBitsParts::kThree}) {
            CheckCase({FewestRows(), 37, k, bits, block, false}, parts);
            CheckCase({FewestRows() + 1, 16, k, bits, block, true}, parts);
          }
        }
      }
    }
  });
}

TEST_F(GemmNBitsTest, DividesRowsIntoTilesOnEveryTarget) {
  OnEveryTarget([] {
    for (size_t m = FewestRows(); m <= 40; ++m) {
      CheckCase({m, 33, 64, 4, 32, true}, NBitsParts::kOne);
    }
  });
}

// Multiplies equal rows x with a column of `bits` bits, all set, in one block with a scale of 1.
void CheckGreatestSum(size_t bits, NBitsParts parts, const std::vector<float>& x) {
  NBitsMatrix w;
  w.k = w.block_size = x.size();
  w.bits = bits;
  w.zero_stride = 1;
  const std::vector<uint8_t> data(w.k * bits / 8, 0xff), zeros(1, 0);
  const float scale = 1;
  w.data = data.data();
  w.scales = &scale;
  w.zero_points = zeros.data();
  if (!HasInt8NBitsPanels(w, parts)) return;
  const size_t m = FewestRows();
  std::vector<float> rows, y(m);
  for (size_t i = 0; i < m; ++i) rows.insert(rows.end(), x.begin(), x.end());
  RunPanels(w, parts, m, rows, nullptr, 1, y.data());
  int64_t sum = 0;
  for (const float element : x) sum += static_cast<int64_t>(element) * ((1 << bits) - 1);
  for (const float got : y) EXPECT_EQ(got, static_cast<float>(sum));
}

// Sums that are partly of 16 bits fit these.
TEST_F(GemmNBitsTest, GreatestSumsAreExactOnEveryTarget) {
  OnEveryTarget([] {
    for (const size_t bits : {2, 4, 8}) {
      for (const size_t block : {16, 32, 64, 128, 512}) {
        SCOPED_TRACE(std::to_string(bits) + " bits, a block of " + std::to_string(block));
        for (const float element : {127.0f, -127.0f}) {
          CheckGreatestSum(bits, NBitsParts::kOne, std::vector(block, element));
        }
        // The first one makes the scale 1; parts of the others are 127 and 127, or -126 and -128.
        for (const float element : {32639.0f, -126.0f * 256 - 128}) {
          std::vector x(block, element);
          x[0] = 32639;
          CheckGreatestSum(bits, NBitsParts::kTwo, x);
        }
      }
    }
  });
}

TEST_F(GemmNBitsTest, TargetsThatRoundGiveTheSameBits) {
  constexpr size_t kM = 23, kN = 40, kK = 300, kBlock = 32, kBlocks = (kK + kBlock - 1) / kBlock;
  Random random(5);
  std::vector<uint8_t> data(kN * kBlocks * kBlock / 2);
  for (uint8_t& byte : data) byte = static_cast<uint8_t>(random.Next());
  const std::vector<float> x = random.Floats(kM * kK, -1, 1),
                           scales = random.Floats(kN * kBlocks, -1, 1);
  NBitsMatrix w;
  w.k = kK;
  w.block_size = kBlock;
  w.data = data.data();
  w.scales = scales.data();
  for (const NBitsParts parts : {NBitsParts::kOne, NBitsParts::kTwo}) {
    std::vector<std::vector<float>> results;
    OnEveryTarget([&] {
      if (!HasInt8NBitsPanels(w, parts)) return;
      std::vector<float>& y = results.emplace_back(kM * kN);
      RunPanels(w, parts, kM, x, nullptr, kN, y.data());
    });
    for (const std::vector<float>& y : results) EXPECT_EQ(y, results[0]);
  }
}

TEST_F(GemmNBitsTest, TellsRowsThatAreNotFiniteOnEveryTarget) {
  OnEveryTarget([] {
    NBitsMatrix w;
    w.k = w.block_size = 32;
    const std::vector<uint8_t> data(16, 0x9a);
    const float scale = 2;
    w.data = data.data();
    w.scales = &scale;
    for (const NBitsParts parts : {NBitsParts::kOne, NBitsParts::kTwo, NBitsParts::kThree}) {
      if (!HasInt8NBitsPanels(w, parts)) continue;
      for (const float special : {kInf, kNan}) {
        std::vector<float> x(FewestRows() * 32, 1.0f), y(FewestRows());
        x[5] = special;
        RunPanels(w, parts, FewestRows(), x, nullptr, 1, y.data());
        EXPECT_FALSE(std::isfinite(y[0]));
        for (size_t i = 1; i < y.size(); ++i) EXPECT_NEAR(y[i], 16 * 2 * 2 + 16 * 1 * 2, 1e-4);
      }
    }
  });
}

// The sums of a block fill 31 bits at most.
TEST_F(GemmNBitsTest, LargeBlocksHaveOnePartOnEveryTarget) {
  OnEveryTarget([] {
    for (const NBitsParts parts : {NBitsParts::kTwo, NBitsParts::kThree}) {
      NBitsMatrix w;
      w.block_size = 32;
      if (!HasInt8NBitsPanels(w, parts)) continue;
      const size_t most = parts == NBitsParts::kTwo ? 4096 : 64;
      w.block_size = most;
      EXPECT_TRUE(HasInt8NBitsPanels(w, parts));
      CheckCase({FewestRows(), 3, most, 4, most, true}, parts);
      w.block_size = 2 * most;
      EXPECT_FALSE(HasInt8NBitsPanels(w, parts));
    }
  });
}

// Without dot products only weights of 2 and 4 bits and rows of one part or two pay.
TEST_F(GemmNBitsTest, Avx2TakesWeightsOfFewBits) {
  const std::span<const Target> targets = SupportedTargets();
  if (std::find(targets.begin(), targets.end(), Target::kAvx2) == targets.end()) {
    GTEST_SKIP() << "no AVX2 here";
  }
  SetActiveTarget(Target::kAvx2);
  NBitsMatrix w;
  w.block_size = 32;
  EXPECT_TRUE(HasInt8NBitsPanels(w, NBitsParts::kTwo));
  EXPECT_FALSE(HasInt8NBitsPanels(w, NBitsParts::kThree));
  w.bits = 8;
  EXPECT_FALSE(HasInt8NBitsPanels(w, NBitsParts::kOne));
}

}  // namespace
}  // namespace tenon::kernels
