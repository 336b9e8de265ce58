#include "kernels/conv/conv_depthwise.h"

#include "conv_cases.h"
#include "kernels/conv/conv_grouped.h"
#include "kernels/conv/conv_weights.h"

namespace tenon::kernels {
namespace {

bool MayWorkInPlace(const Conv2dShape& s) {
  return s.kernel_height * s.kernel_width == 1 && s.stride_height * s.stride_width == 1 &&
         s.in_height == s.out_height && s.in_width == s.out_width;
}

class ConvDepthwiseTest : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvDepthwiseTest, MatchesReferenceOnEveryTarget) {
  const ConvCase& c = GetParam();
  const ConvData data(c);
  const auto pack_block = [&](size_t block, float* to) {
    PackDepthwiseWeights(c.shape, data.weights.data(), block, to);
  };
  const std::vector<float> packed =
      PackBlocks(c.shape.out_channels, PackedDepthwiseWeightsSize(c.shape), pack_block);
  ForEveryTarget([&] {
    GuardedBuffer in(ToBlocked(data.in, c.shape.batch, c.shape.in_channels,
                               c.shape.in_height * c.shape.in_width, std::nanf("")));
    GuardedBuffer weights(packed);
    GuardedBuffer residual(ToBlocked(data.residual, c.residual ? c.shape.batch : 0,
                                     c.shape.out_channels, data.pixels, 0));
    GuardedBuffer out(BlockedSize(c.shape.batch, c.shape.out_channels, data.pixels));
    const auto run = [&](float* into) {
      const ConvDepthwiseArgs args = {c.shape, in.data(), weights.data(), into,
                                      data.Epilogue(c, residual.data())};
      for (size_t t = 0; t < ConvDepthwiseTaskCount(c.shape); ++t) RunConvDepthwiseTask(args, t);
    };
    const auto expect = [&](GuardedBuffer& result) {
      ExpectBlockedNear(result.values(), data.expected, c.shape.batch, c.shape.out_channels,
                        data.pixels, data.tolerance);
    };
    run(out.data());
    expect(out);
    if (!MayWorkInPlace(c.shape)) return;
    run(in.data());
    expect(in);
  });
}

constexpr Conv2dShape Depthwise(size_t batch, size_t channels, size_t height, size_t width,
                                size_t kernel_height, size_t kernel_width, size_t stride,
                                size_t dilation, size_t pad_top, size_t pad_left, size_t pad_bottom,
                                size_t pad_right) {
  const size_t out_height =
      (height + pad_top + pad_bottom - (kernel_height - 1) * dilation - 1) / stride + 1;
  const size_t out_width =
      (width + pad_left + pad_right - (kernel_width - 1) * dilation - 1) / stride + 1;
  return {batch,         channels,     height, width,  channels, out_height, out_width, channels,
          kernel_height, kernel_width, stride, stride, dilation, dilation,   pad_top,   pad_left};
}

const ConvCase kDepthwiseCases[] = {
    {"one_pixel", Depthwise(1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0)},
    {"1x1", Depthwise(2, 35, 7, 31, 1, 1, 1, 1, 0, 0, 0, 0), UnaryOp::kRelu, true},
    {"1x1_sigmoid", Depthwise(1, 16, 5, 9, 1, 1, 1, 1, 0, 0, 0, 0), UnaryOp::kSigmoid},
    {"1x1_stride_2", Depthwise(1, 16, 9, 37, 1, 1, 2, 1, 0, 0, 0, 0)},
    {"3x3", Depthwise(2, 32, 14, 14, 3, 3, 1, 1, 1, 1, 1, 1), UnaryOp::kRelu, true},
    {"3x3_odd", Depthwise(1, 19, 9, 23, 3, 3, 1, 1, 1, 1, 1, 1), UnaryOp::kClip, true},
    {"3x3_stride_2", Depthwise(1, 16, 15, 37, 3, 3, 2, 1, 1, 1, 1, 1), UnaryOp::kClip},
    {"3x3_stride_2_even", Depthwise(1, 16, 16, 38, 3, 3, 2, 1, 0, 0, 1, 1)},
    {"3x3_stride_3", Depthwise(1, 16, 16, 38, 3, 3, 3, 1, 1, 1, 1, 1)},
    {"3x3_dilated", Depthwise(1, 20, 12, 33, 3, 3, 1, 3, 3, 3, 3, 3), UnaryOp::kRelu},
    {"3x3_dilated_past_the_image", Depthwise(1, 16, 4, 4, 3, 3, 1, 6, 6, 6, 6, 6)},
    {"5x5", Depthwise(1, 24, 12, 33, 5, 5, 1, 1, 2, 2, 2, 2), UnaryOp::kClip},
    {"5x5_stride_2", Depthwise(1, 16, 12, 35, 5, 5, 2, 1, 2, 2, 2, 2), UnaryOp::kRelu},
    {"5x5_sigmoid", Depthwise(1, 24, 12, 33, 5, 5, 1, 1, 2, 2, 2, 2), UnaryOp::kSigmoid},
    {"7x7", Depthwise(1, 16, 9, 29, 7, 7, 1, 1, 3, 3, 3, 3)},
    {"7x7_stride_2", Depthwise(1, 16, 9, 41, 7, 7, 2, 1, 3, 3, 3, 3)},
    {"7x7_small_image", Depthwise(1, 16, 2, 2, 7, 7, 1, 1, 3, 3, 3, 3)},
    {"2x2", Depthwise(1, 16, 5, 12, 2, 2, 1, 1, 0, 0, 1, 1)},
    {"1x31", Depthwise(1, 35, 1, 300, 1, 31, 1, 1, 0, 15, 0, 15), UnaryOp::kRelu},
    {"9x1", Depthwise(1, 16, 30, 3, 9, 1, 1, 1, 4, 0, 4, 0)},
    {"pads_beyond_the_kernel", Depthwise(1, 16, 3, 3, 3, 3, 1, 1, 5, 5, 5, 5), UnaryOp::kClip,
     true},
    {"many_tasks", Depthwise(1, 17, 150, 150, 3, 3, 1, 1, 1, 1, 1, 1)},
};
INSTANTIATE_TEST_SUITE_P(Shapes, ConvDepthwiseTest, testing::ValuesIn(kDepthwiseCases),
                         ConvCaseName);

class ConvGroupedTest : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvGroupedTest, MatchesReferenceOnEveryTarget) {
  const ConvCase& c = GetParam();
  ASSERT_TRUE(ConvGroupedSupports(c.shape));
  const ConvData data(c);
  const auto pack_block = [&](size_t block, float* to) {
    PackGroupedWeights(c.shape, data.weights.data(), block, to);
  };
  const std::vector<float> packed =
      PackBlocks(c.shape.out_channels, PackedGroupedWeightsSize(c.shape), pack_block);
  ForEveryTarget([&] {
    GuardedBuffer in(ToBlocked(data.in, c.shape.batch, c.shape.in_channels,
                               c.shape.in_height * c.shape.in_width, std::nanf("")));
    GuardedBuffer weights(packed);
    GuardedBuffer residual(ToBlocked(data.residual, c.residual ? c.shape.batch : 0,
                                     c.shape.out_channels, data.pixels, 0));
    GuardedBuffer out(BlockedSize(c.shape.batch, c.shape.out_channels, data.pixels));
    GuardedBuffer scratch(ConvGroupedScratchSize(c.shape) / 4, true);
    const ConvGroupedArgs args = {c.shape, in.data(), weights.data(), out.data(),
                                  data.Epilogue(c, residual.data())};
    for (size_t t = 0; t < ConvGroupedTaskCount(c.shape); ++t) {
      RunConvGroupedTask(args, t, scratch.data());
    }
    ExpectBlockedNear(out.values(), data.expected, c.shape.batch, c.shape.out_channels, data.pixels,
                      data.tolerance);
  });
}

const ConvCase kGroupedCases[] = {
    {"8_a_group", {2, 32, 14, 14, 32, 14, 14, 4, 3, 3, 1, 1, 1, 1, 1, 1}, UnaryOp::kRelu, true},
    {"8_in_half_a_block",
     {1, 104, 7, 9, 104, 7, 9, 13, 3, 3, 1, 1, 1, 1, 1, 1},
     UnaryOp::kSigmoid,
     true},
    {"8_stride_2", {1, 24, 15, 33, 24, 8, 17, 3, 3, 3, 2, 2, 1, 1, 1, 1}, UnaryOp::kClip},
    {"8_dilated", {1, 8, 9, 40, 8, 9, 40, 1, 3, 3, 1, 1, 2, 3, 2, 3}},
    {"4_a_group", {1, 36, 9, 15, 36, 9, 15, 9, 3, 3, 1, 1, 1, 1, 1, 1}, UnaryOp::kClip, true},
    {"2_a_group", {1, 22, 5, 20, 22, 5, 20, 11, 5, 5, 1, 1, 1, 1, 2, 2}},
    {"pointwise", {1, 40, 5, 9, 40, 5, 9, 5}},
    {"many_tasks", {1, 16, 120, 120, 16, 120, 120, 2, 3, 3, 1, 1, 1, 1, 1, 1}},
};
INSTANTIATE_TEST_SUITE_P(Shapes, ConvGroupedTest, testing::ValuesIn(kGroupedCases), ConvCaseName);

TEST(ConvGroupedTest, RefusesOtherGroups) {
  EXPECT_FALSE(ConvGroupedSupports({1, 48, 4, 4, 48, 4, 4, 3}));   // 16 a group
  EXPECT_FALSE(ConvGroupedSupports({1, 12, 4, 4, 12, 4, 4, 4}));   // 3 a group
  EXPECT_FALSE(ConvGroupedSupports({1, 16, 4, 4, 32, 4, 4, 4}));   // more out than in
  EXPECT_FALSE(ConvGroupedSupports({1, 16, 4, 4, 16, 4, 4, 16}));  // depthwise
}

}  // namespace
}  // namespace tenon::kernels
