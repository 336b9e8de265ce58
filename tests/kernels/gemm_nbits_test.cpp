#include "kernels/gemm/gemm_nbits.h"

#include <algorithm>
#include <limits>
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

  const size_t row_memory = Int8NBitsRows::Bytes(w, parts, c.m);
  std::vector<std::byte> memory(row_memory + NBitsPanelBytes(w) + 64, std::byte{0x5a});
  std::byte* aligned = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
  const Int8NBitsRows rows(w, parts, c.m, aligned);
  for (size_t i = 0; i < c.m; ++i) rows.Set(w, i, x.data() + i * c.k);
  std::vector<float> y(c.m * c.n + 1, 7.0f);
  for (size_t first = 0; first < c.n; first += kNBitsPanelColumns) {
    RunNBitsPanel(w, rows, bias.data(), first, y.data(), c.n, aligned + row_memory);
  }
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

TEST_F(GemmNBitsTest, MatchesReference) {
  for (const size_t bits : {2, 4, 8}) {
    for (const size_t block : {16, 32, 64, 128}) {
      for (const size_t k : {1, 16, 33, 96, 300}) {
        for (const NBitsParts parts : {NBitsParts::kOne, NBitsParts::kTwo, NBitsParts::kThree}) {
          CheckCase({10, 37, k, bits, block, false}, parts);
          CheckCase({11, 16, k, bits, block, true}, parts);
        }
      }
    }
  }
}

TEST_F(GemmNBitsTest, DividesRowsIntoTiles) {
  for (size_t m = kLeastInt8NBitsRows; m <= 40; ++m)
    CheckCase({m, 33, 64, 4, 32, true}, NBitsParts::kOne);
}

TEST_F(GemmNBitsTest, TellsRowsThatAreNotFinite) {
  NBitsMatrix w;
  w.k = w.block_size = 32;
  const std::vector<uint8_t> data(16, 0x9a);
  const float scale = 2;
  w.data = data.data();
  w.scales = &scale;
  if (!HasInt8NBitsPanels(w, NBitsParts::kTwo)) GTEST_SKIP() << "no dot products of bytes here";
  const auto check = [&](float special, NBitsParts parts) {
    constexpr size_t kRows = kLeastInt8NBitsRows;
    std::vector<float> x(kRows * 32, 1.0f);
    x[5] = special;
    const size_t row_memory = Int8NBitsRows::Bytes(w, parts, kRows);
    std::vector<std::byte> memory(row_memory + NBitsPanelBytes(w) + 64);
    std::byte* aligned = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
    const Int8NBitsRows rows(w, parts, kRows, aligned);
    for (size_t i = 0; i < kRows; ++i) rows.Set(w, i, x.data() + i * 32);
    float y[kRows] = {};
    RunNBitsPanel(w, rows, nullptr, 0, y, 1, aligned + row_memory);
    EXPECT_FALSE(std::isfinite(y[0]));
    for (size_t i = 1; i < kRows; ++i) EXPECT_NEAR(y[i], 16 * 2 * 2 + 16 * 1 * 2, 1e-4);
  };
  for (const NBitsParts parts : {NBitsParts::kOne, NBitsParts::kTwo, NBitsParts::kThree}) {
    check(std::numeric_limits<float>::infinity(), parts);
    check(std::nanf(""), parts);
  }
}

// The sums of a block fill 31 bits at most.
TEST_F(GemmNBitsTest, LargeBlocksHaveOnePart) {
  NBitsMatrix w;
  if (!HasInt8NBitsPanels(w, NBitsParts::kOne)) GTEST_SKIP() << "no dot products of bytes here";
  for (const NBitsParts parts : {NBitsParts::kTwo, NBitsParts::kThree}) {
    const size_t most = parts == NBitsParts::kTwo ? 4096 : 64;
    w.block_size = most;
    EXPECT_TRUE(HasInt8NBitsPanels(w, parts));
    CheckCase({10, 3, most, 4, most, true}, parts);
    w.block_size = 2 * most;
    EXPECT_FALSE(HasInt8NBitsPanels(w, parts));
  }
}

}  // namespace
}  // namespace tenon::kernels
