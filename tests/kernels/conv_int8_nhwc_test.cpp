#include "kernels/conv/conv_int8_nhwc.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

struct NhwcCase {
  size_t channels, height, width, out_channels, kernel;
  size_t stride = 1, pad = 0, dilation = 1, groups = 1, batch = 1;
};

const NhwcCase kCases[] = {
    // Pointwise, read in place, with whole and other panels.
    {64, 7, 9, 64, 1},
    {4, 1, 1, 1, 1},
    {16, 5, 3, 17, 1},
    {8, 14, 14, 48, 1},
    {64, 8, 8, 33, 1, 2},
    {20, 9, 7, 40, 1, 1, 0, 1, 1, 3},
    // Runs that are no whole quads.
    {3, 11, 13, 20, 3, 2, 1},
    {3, 23, 21, 16, 7, 2, 3},
    {5, 6, 6, 7, 1},
    {1, 9, 9, 5, 5, 1, 2},
    // Windows.
    {16, 7, 7, 32, 3, 1, 1},
    {24, 10, 12, 36, 3, 2, 1},
    {8, 12, 12, 8, 3, 1, 2, 2},
    {12, 9, 9, 10, 3, 1, 0, 3},
    {6, 15, 8, 12, 5, 1, 4},
    {64, 28, 28, 96, 3, 1, 1, 1, 1, 2},
    // Tiles of 2 x 2 outputs, whole and cut ones.
    {16, 6, 8, 16, 3, 1, 1},
    {17, 5, 7, 20, 3, 1, 1},
    {33, 9, 4, 40, 3, 1, 0},
    {24, 3, 3, 18, 3, 1, 0},
    {20, 4, 5, 16, 3, 1, 2, 1, 1, 3},
    {256, 13, 13, 64, 3, 1, 1},
    {48, 31, 27, 24, 3, 1, 1},
    // Groups.
    {12, 6, 6, 24, 3, 1, 1, 1, 3},
    {10, 7, 5, 4, 3, 1, 1, 1, 2},
    {8, 5, 5, 16, 3, 1, 1, 1, 8},
    // One channel in each group.
    {16, 7, 7, 16, 3, 1, 1, 1, 16},
    {24, 9, 8, 24, 3, 2, 1, 1, 24},
    {3, 6, 6, 3, 3, 1, 1, 1, 3, 2},
    {72, 14, 14, 72, 5, 1, 2, 1, 72},
    {100, 6, 5, 100, 3, 1, 2, 2, 100},
    {130, 3, 3, 130, 7, 1, 3, 1, 130},
    {40, 8, 8, 40, 2, 2, 0, 1, 40},
    {96, 30, 30, 96, 3, 2, 1, 1, 96},
    {17, 4, 6, 17, 1, 1, 0, 1, 17},
};

ConvDim DimOf(const NhwcCase& c, size_t in) {
  const size_t extent = (c.kernel - 1) * c.dilation + 1;
  return {in, (in + 2 * c.pad - extent) / c.stride + 1, c.kernel, c.stride, c.dilation, c.pad};
}

struct NhwcData {
  std::vector<uint8_t> in, weights;
  std::vector<int32_t> bias;
  std::vector<float> scales;
};

int Value(uint8_t byte, bool is_signed) { return is_signed ? static_cast<int8_t>(byte) : byte; }

// The sum for an output channel at (y, x) of image `n`.
int64_t SumAt(const Int8ConvArgs& args, const NhwcData& data, size_t n, size_t y, size_t x,
              size_t channel) {
  const ConvGeneralShape& shape = args.shape;
  const ConvDim &height = shape.dims[1], &width = shape.dims[2];
  const size_t depth = shape.in_channels / shape.groups;
  const size_t group = channel / (shape.out_channels / shape.groups);
  int64_t sum = data.bias[channel];
  for (size_t ky = 0; ky < height.kernel; ++ky) {
    for (size_t kx = 0; kx < width.kernel; ++kx) {
      const size_t in_y = y * height.stride + ky * height.dilation - height.pad_begin;
      const size_t in_x = x * width.stride + kx * width.dilation - width.pad_begin;
      if (in_y >= height.in || in_x >= width.in) continue;
      for (size_t c = 0; c < depth; ++c) {
        const size_t at =
            ((n * height.in + in_y) * width.in + in_x) * shape.in_channels + group * depth + c;
        const size_t w = ((channel * depth + c) * height.kernel + ky) * width.kernel + kx;
        const int weight =
            Value(data.weights[w], args.weights_are_signed) - (args.weights_are_signed ? 0 : 128);
        sum += int64_t{Value(data.in[at], args.in_is_signed) - args.in_zero} * weight;
      }
    }
  }
  return sum;
}

// Weights whose products with neighbours may saturate in 16 bits: some, a few of many, or only with
// three neighbours and not with one.
enum class Large { kSome, kFew, kOfFour };

uint8_t WeightByte(Random& random, Large large, bool is_signed) {
  if (large == Large::kSome) return static_cast<uint8_t>(random.Next());
  const bool is_large = random.Below(60) == 0;
  const auto most = large == Large::kOfFour ? 67 : is_large ? 128 : 40;
  const auto least = large == Large::kFew && is_large ? 90 : 0;
  const auto magnitude = least + static_cast<int>(random.Below(most - least));
  const int weight = random.Below(2) ? magnitude : -magnitude;
  return static_cast<uint8_t>(is_signed ? weight : weight + 128);
}

void CheckCase(const NhwcCase& c, Large large, bool in_is_signed, bool weights_are_signed,
               bool out_is_signed) {
  Int8ConvArgs args;
  args.shape.batch = c.batch;
  args.shape.in_channels = c.channels;
  args.shape.out_channels = c.out_channels;
  args.shape.groups = c.groups;
  args.shape.dims[1] = DimOf(c, c.height);
  args.shape.dims[2] = DimOf(c, c.width);
  if (!HasInt8NhwcConv(args.shape)) return;
  const ConvDim &height = args.shape.dims[1], &width = args.shape.dims[2];
  const size_t depth = c.channels / c.groups;
  SCOPED_TRACE(std::to_string(c.channels) + " channels of " + std::to_string(c.height) + " x " +
               std::to_string(c.width) + " to " + std::to_string(c.out_channels) + ", kernel " +
               std::to_string(c.kernel) + ", groups " + std::to_string(c.groups));
  Random random(c.channels * 7 + c.out_channels + c.kernel);
  NhwcData data;
  data.in.resize(c.batch * c.height * c.width * c.channels);
  data.weights.resize(c.out_channels * depth * c.kernel * c.kernel);
  for (uint8_t& byte : data.in) byte = static_cast<uint8_t>(random.Next());
  for (uint8_t& byte : data.weights) byte = WeightByte(random, large, weights_are_signed);
  for (size_t i = 0; i < c.out_channels; ++i) {
    data.bias.push_back(static_cast<int32_t>(random.Below(2000)) - 1000);
  }
  const float scale = 1.0f / static_cast<float>(40 * (1 + depth * c.kernel));
  data.scales = random.Floats(c.out_channels, scale / 2, scale);
  args.in = data.in.data();
  args.in_is_signed = in_is_signed;
  args.in_zero = in_is_signed ? -7 : 121;
  args.weights_are_signed = weights_are_signed;
  args.epilogue.bias_rows = data.bias.data();
  args.epilogue.scale_rows = data.scales.data();
  args.epilogue.zero_point = out_is_signed ? -3 : 110;
  args.epilogue.type = out_is_signed ? Int8Output::kInt8 : Int8Output::kUint8;

  const size_t out_size = c.batch * height.out * width.out * c.out_channels;
  std::vector<uint8_t> out(out_size + 1, 77);
  args.out = out.data();
  const size_t weight_bytes = PackedInt8NhwcWeightsSize(args.shape);
  std::vector<std::byte> memory(weight_bytes + Int8NhwcConvScratchSize(args.shape) + 64,
                                std::byte{0x5a});
  std::byte* packed = memory.data() + 64 - reinterpret_cast<uintptr_t>(memory.data()) % 64;
  for (size_t task = PackInt8NhwcWeightsTaskCount(args.shape); task-- > 0;) {
    RunPackInt8NhwcWeightsTask(args.shape, data.weights.data(), weights_are_signed, task, packed);
  }
  args.packed_weights = packed;
  const auto run = [&] {
    for (size_t task = Int8NhwcConvTaskCount(args.shape); task-- > 0;) {
      RunInt8NhwcConvTask(args, task, packed + weight_bytes);
    }
  };
  // With a table, the same bytes are looked up.
  uint8_t table[256];
  for (size_t i = 0; i < 256; ++i) table[i] = static_cast<uint8_t>(i * 77 + 5);
  args.table = table;
  run();
  const std::vector<uint8_t> found = out;
  args.table = nullptr;
  run();
  for (size_t i = 0; i < out_size; ++i) ASSERT_EQ(found[i], table[out[i]]) << i;
  EXPECT_EQ(found.back(), 77);
  EXPECT_EQ(out.back(), 77);
  const int least = out_is_signed ? -128 : 0;
  const uint8_t* at = out.data();
  for (size_t n = 0; n < c.batch; ++n) {
    for (size_t y = 0; y < height.out; ++y) {
      for (size_t x = 0; x < width.out; ++x) {
        for (size_t channel = 0; channel < c.out_channels; ++channel, ++at) {
          const auto sum = static_cast<float>(SumAt(args, data, n, y, x, channel));
          const double rounded = std::nearbyint(sum * data.scales[channel]);
          const double expected =
              std::clamp<double>(rounded + args.epilogue.zero_point, least, least + 255);
          ASSERT_EQ(Value(*at, out_is_signed), expected)
              << "image " << n << ", (" << y << ", " << x << "), channel " << channel;
        }
      }
    }
  }
}

class ConvInt8NhwcTest : public TargetTest {};

// Packed weights may come from a file that somebody has changed.
TEST_F(ConvInt8NhwcTest, PackedWeightsAreNotTrusted) {
  Int8ConvArgs args;
  args.shape.in_channels = 24;
  args.shape.out_channels = 20;
  args.shape.dims[1] = args.shape.dims[2] = {18, 9, 3, 2, 1, 1};
  args.epilogue.type = Int8Output::kUint8;
  if (!HasInt8NhwcConv(args.shape)) GTEST_SKIP() << "neither AVX2 nor dot products of bytes here";
  Random random(3);
  std::vector<uint8_t> in(18 * 18 * 24, 200), out(9 * 9 * 20 + 1, 77);
  args.in = in.data();
  args.out = out.data();
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  std::vector<Line> packed(PackedInt8NhwcWeightsSize(args.shape) / 64);
  std::vector<Line> scratch(Int8NhwcConvScratchSize(args.shape) / 64);
  args.packed_weights = packed.data()->bytes;
  for (uint32_t i = 0; i < 9; ++i) {
    for (Line& line : packed) {
      for (std::byte& byte : line.bytes) byte = static_cast<std::byte>(random.Next());
      // Any line may be taken for the number of rests, and the form of the weights.
      const uint32_t form = i % 3;
      std::memcpy(line.bytes + sizeof(form), &form, sizeof(form));
    }
    for (size_t task = Int8NhwcConvTaskCount(args.shape); task-- > 0;) {
      RunInt8NhwcConvTask(args, task, scratch.data()->bytes);
    }
    EXPECT_EQ(out.back(), 77);
  }
}

TEST_F(ConvInt8NhwcTest, MatchesReference) {
  ConvGeneralShape pointwise;
  pointwise.in_channels = pointwise.out_channels = 4;
  if (!HasInt8NhwcConv(pointwise)) GTEST_SKIP() << "neither AVX2 nor dot products of bytes here";
  for (const NhwcCase& c : kCases) {
    for (const Large large : {Large::kSome, Large::kFew, Large::kOfFour}) {
      CheckCase(c, large, false, true, false);
      CheckCase(c, large, true, true, true);
      CheckCase(c, large, false, false, true);
    }
  }
}

}  // namespace
}  // namespace tenon::kernels
