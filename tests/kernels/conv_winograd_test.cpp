#include "kernels/conv/conv_winograd.h"

#include "conv_cases.h"

namespace tenon::kernels {
namespace {

class ConvWinogradTest : public testing::TestWithParam<ConvCase> {};

void CheckTile(const ConvCase& c, const ConvData& data, WinogradTile tile, double tolerance) {
  SCOPED_TRACE(testing::Message() << "tile " << static_cast<int>(tile));
  ForEveryTarget([&] {
    const auto pack_block = [&](size_t block, float* to) {
      PackWinogradWeights(c.shape, tile, data.weights.data(), block, to);
    };
    const std::vector<float> packed =
        PackBlocks(c.shape.out_channels, PackedWinogradWeightsSize(c.shape, tile), pack_block);
    GuardedBuffer in(ToBlocked(data.in, c.shape.batch, c.shape.in_channels,
                               c.shape.in_height * c.shape.in_width, std::nanf("")));
    GuardedBuffer weights(packed);
    GuardedBuffer residual(ToBlocked(data.residual, c.residual ? c.shape.batch : 0,
                                     c.shape.out_channels, data.pixels, 0));
    GuardedBuffer out(BlockedSize(c.shape.batch, c.shape.out_channels, data.pixels));
    const PackConvBlock pack = pack_block;
    const auto run = [&](const float* packed_weights) {
      const bool is_packed = packed_weights != nullptr;
      GuardedBuffer scratch(ConvWinogradScratchSize(c.shape, tile, is_packed) / 4, true);
      const ConvEpilogue epilogue = data.Epilogue(c, residual.data());
      const ConvWinogradArgs args = {c.shape,    tile,     in.data(), packed_weights,
                                     out.data(), epilogue, &pack};
      for (size_t t = 0; t < ConvWinogradTaskCount(c.shape, tile, is_packed); ++t) {
        RunConvWinogradTask(args, t, scratch.data());
      }
      return out.values();
    };
    const std::vector<float> got = run(weights.data());
    ExpectBlockedNear(got, data.expected, c.shape.batch, c.shape.out_channels, data.pixels,
                      tolerance);
    EXPECT_EQ(run(nullptr), got) << "weights packed by the tasks";
  });
}

TEST_P(ConvWinogradTest, MatchesReferenceOnEveryTarget) {
  const ConvCase& c = GetParam();
  ASSERT_TRUE(ConvWinogradSupports(c.shape));
  const ConvData data(c);
  // Operands lie in [-1, 1], so the deviation of the outputs is sqrt(9 C) / 3.
  const double deviation = std::sqrt(static_cast<double>(c.shape.in_channels));
  CheckTile(c, data, WinogradTile::k2x2, 1e-6 + 4e-6 * deviation);
  CheckTile(c, data, WinogradTile::k4x4, 1e-6 + 1.6e-5 * deviation);
}

constexpr Conv2dShape Shape(size_t batch, size_t in, size_t height, size_t width, size_t out,
                            size_t pad_top = 1, size_t pad_left = 1, size_t pads_end = 1) {
  return {batch,
          in,
          height,
          width,
          out,
          height + pad_top + pads_end - 2,
          width + pad_left + pads_end - 2,
          1,
          3,
          3,
          1,
          1,
          1,
          1,
          pad_top,
          pad_left};
}

const ConvCase kWinogradCases[] = {
    {"one_pixel", Shape(1, 1, 1, 1, 1)},
    {"one_tile", Shape(1, 16, 4, 4, 16), UnaryOp::kRelu},
    {"even", Shape(2, 32, 8, 8, 48), UnaryOp::kRelu, true},
    {"odd", Shape(1, 19, 7, 13, 37), UnaryOp::kClip, true},
    {"no_pads", Shape(1, 16, 9, 10, 16, 0, 0, 0)},
    {"uneven_pads", Shape(1, 16, 6, 9, 16, 0, 1, 0), UnaryOp::kRelu},
    {"pads_beyond_the_kernel", Shape(1, 16, 3, 3, 20, 7, 6, 5), UnaryOp::kClip, true},
    {"sigmoid", Shape(1, 16, 6, 7, 20), UnaryOp::kSigmoid, true},
    {"many_groups", Shape(1, 64, 40, 40, 32), UnaryOp::kRelu},
    {"split_by_channels", Shape(2, 40, 7, 7, 400), UnaryOp::kRelu, true},
    {"deep", Shape(1, 300, 8, 8, 16)},
    {"no_images", Shape(0, 16, 8, 8, 16)},
};
INSTANTIATE_TEST_SUITE_P(Shapes, ConvWinogradTest, testing::ValuesIn(kWinogradCases), ConvCaseName);

TEST(ConvWinogradTest, ChoosesTheTileByShape) {
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 64, 56, 56, 64)), WinogradTile::k4x4);
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 256, 14, 14, 256)), WinogradTile::k4x4);
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 512, 7, 7, 512)), WinogradTile::k2x2);
  EXPECT_EQ(ChooseWinogradTile(Shape(8, 512, 7, 7, 512)), WinogradTile::k4x4);
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 512, 1, 1, 512)), WinogradTile::kNone);
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 3, 224, 224, 64)), WinogradTile::kNone);
}

TEST(ConvWinogradTest, RefusesOtherKernels) {
  Conv2dShape shape = Shape(1, 64, 56, 56, 64);
  EXPECT_TRUE(WinogradWorthwhile(shape));
  for (size_t Conv2dShape::*field :
       {&Conv2dShape::groups, &Conv2dShape::stride_height, &Conv2dShape::stride_width,
        &Conv2dShape::dilation_height, &Conv2dShape::dilation_width}) {
    Conv2dShape other = shape;
    other.*field = 2;
    EXPECT_FALSE(ConvWinogradSupports(other));
    EXPECT_FALSE(WinogradWorthwhile(other));
  }
  shape.kernel_width = 5;
  EXPECT_FALSE(WinogradWorthwhile(shape));
}

}  // namespace
}  // namespace tenon::kernels
