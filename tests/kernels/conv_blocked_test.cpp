#include "kernels/conv/conv_blocked.h"

#include "conv_cases.h"
#include "kernels/conv/conv_blocked_bf16.h"
#include "kernels/conv/conv_stem.h"
#include "kernels/conv/conv_weights.h"
#include "kernels/gemm/gemm_bf16.h"

namespace tenon::kernels {
namespace {

// Runs all tasks of a case, whose output must be `expected`, on packed weights and on those that
// tasks pack. `in` and `weights` have the form that `run_task` takes.
void ExpectExpected(const ConvCase& c, const ConvData& data, const float* in, const float* weights,
                    const PackConvBlock& pack,
                    void (*run_task)(const ConvBlockedArgs&, size_t, void*)) {
  GuardedBuffer residual(ToBlocked(data.residual, c.residual ? c.shape.batch : 0,
                                   c.shape.out_channels, data.pixels, 0));
  GuardedBuffer out(BlockedSize(c.shape.batch, c.shape.out_channels, data.pixels));
  const auto run = [&](const float* packed_weights) {
    const bool is_packed = packed_weights != nullptr;
    GuardedBuffer scratch(ConvBlockedScratchSize(c.shape, is_packed) / 4, true);
    const ConvBlockedArgs args = {
        c.shape, in, packed_weights, out.data(), data.Epilogue(c, residual.data()), &pack};
    for (size_t t = 0; t < ConvBlockedTaskCount(c.shape, is_packed); ++t) {
      run_task(args, t, scratch.data());
    }
    return out.values();
  };
  const std::vector<float> got = run(weights);
  ExpectBlockedNear(got, data.expected, c.shape.batch, c.shape.out_channels, data.pixels,
                    data.tolerance);
  EXPECT_EQ(run(nullptr), got) << "weights packed by the tasks";
}

// NaN in the idle lanes of the input reveals any use of them.
std::vector<float> BlockedInput(const ConvCase& c, const ConvData& data) {
  return ToBlocked(data.in, c.shape.batch, c.shape.in_channels,
                   c.shape.in_height * c.shape.in_width, std::nanf(""));
}

class ConvBlockedTest : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvBlockedTest, MatchesReferenceOnEveryTarget) {
  const ConvCase& c = GetParam();
  ASSERT_TRUE(ConvBlockedSupports(c.shape));
  const ConvData data(c);
  const auto pack_block = [&](size_t block, float* to) {
    PackConvWeights(c.shape, data.weights.data(), block, to);
  };
  const std::vector<float> packed =
      PackBlocks(c.shape.out_channels, PackedConvWeightsSize(c.shape), pack_block);
  ForEveryTarget([&] {
    GuardedBuffer in(BlockedInput(c, data)), weights(packed);
    ExpectExpected(c, data, in.data(), weights.data(), pack_block, &RunConvBlockedTask);
  });
}

constexpr auto kRelu = UnaryOp::kRelu;
constexpr auto kClip = UnaryOp::kClip;
constexpr auto kSigmoid = UnaryOp::kSigmoid;

// batch, in c h w, out c h w, groups, kernel, stride, dilation, pads top left
const ConvCase kBlockedCases[] = {
    {"one_pixel", {1, 16, 1, 1, 16, 1, 1}},
    {"one_channel", {1, 1, 3, 3, 1, 3, 3, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kRelu},
    {"pointwise", {2, 32, 5, 7, 48, 5, 7}, kClip, true},
    {"pointwise_odd_channels", {1, 24, 9, 5, 19, 9, 5}, kClip},
    {"pointwise_strided", {1, 20, 9, 8, 33, 5, 4, 1, 1, 1, 2, 2}, kRelu},
    {"pointwise_deep", {1, 3100, 1, 3, 17, 1, 3}, kRelu, true},
    {"3x3", {1, 16, 14, 14, 32, 14, 14, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kRelu, true},
    {"3x3_wide", {1, 17, 3, 61, 40, 3, 61, 1, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"3x3_very_wide", {1, 5, 2, 460, 16, 2, 460, 1, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"3x3_no_pads", {2, 16, 9, 31, 16, 7, 29, 1, 3, 3}},
    {"3x3_stride_2", {1, 33, 15, 58, 16, 8, 29, 1, 3, 3, 2, 2, 1, 1, 1, 1}, kClip, true},
    {"3x3_stride_3", {1, 16, 10, 10, 16, 4, 4, 1, 3, 3, 3, 3, 1, 1, 1, 1}},
    {"3x3_dilated", {1, 16, 12, 40, 20, 12, 40, 1, 3, 3, 1, 1, 2, 3, 2, 3}, kRelu},
    {"3x3_dilated_past_the_image", {1, 16, 4, 5, 16, 4, 5, 1, 3, 3, 1, 1, 6, 6, 6, 6}},
    {"5x5_uneven_pads", {1, 8, 6, 6, 10, 6, 7, 1, 5, 5, 1, 1, 1, 1, 4, 2}},
    {"pads_beyond_the_kernel", {1, 16, 3, 3, 16, 11, 11, 1, 3, 3, 1, 1, 1, 1, 5, 5}, kClip, true},
    {"1x7", {1, 16, 4, 17, 16, 4, 17, 1, 1, 7, 1, 1, 1, 1, 0, 3}},
    {"7x1", {1, 16, 17, 4, 16, 17, 4, 1, 7, 1, 1, 1, 1, 1, 3, 0}},
    {"one_column", {2, 20, 31, 1, 40, 31, 1, 1, 3, 1, 1, 1, 1, 1, 1, 0}, kRelu, true},
    {"one_column_of_wide_windows", {1, 32, 23, 12, 40, 15, 1, 1, 9, 12}, kSigmoid, true},
    {"two_columns_strided", {1, 16, 29, 5, 24, 15, 2, 1, 3, 3, 2, 3, 1, 1, 1, 1}},
    {"three_columns_dilated", {1, 17, 20, 3, 16, 20, 3, 1, 3, 3, 1, 1, 2, 2, 2, 2}, kClip},
    {"three_columns_of_pads", {1, 16, 3, 1, 16, 11, 3, 1, 3, 3, 1, 1, 1, 1, 5, 2}},
    {"two_columns_at_both_edges", {1, 16, 2, 2, 16, 2, 2, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kRelu, true},
    {"three_columns_many_input_blocks", {1, 600, 9, 3, 18, 9, 3, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kRelu},
    {"many_input_blocks", {1, 600, 4, 4, 18, 4, 4, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kRelu, true},
    {"sigmoid", {1, 600, 4, 4, 36, 4, 4, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kSigmoid, true},
    {"groups", {2, 96, 7, 7, 48, 7, 7, 3, 3, 3, 1, 1, 1, 1, 1, 1}, kRelu, true},
    {"groups_pointwise", {1, 32, 6, 6, 96, 6, 6, 2}},
    {"many_tasks", {1, 64, 40, 40, 64, 40, 40, 1, 3, 3, 1, 1, 1, 1, 1, 1}},
    {"no_images", {0, 16, 4, 4, 16, 4, 4}},
};
INSTANTIATE_TEST_SUITE_P(Shapes, ConvBlockedTest, testing::ValuesIn(kBlockedCases), ConvCaseName);

class ConvBlockedBf16Test : public ConvBlockedTest {};

TEST_P(ConvBlockedBf16Test, EqualsTheConvolutionOfRoundedNumbers) {
  if (!IsBf16GemmFast(Bf16Parts::kOne)) GTEST_SKIP() << "the processor has no such products";
  const ConvCase& c = GetParam();
  const ConvData data(c, true);
  const size_t block_floats = PackedConvWeightsSize(c.shape) / ChannelBlocks(c.shape.out_channels);
  const auto pack_block = [&](size_t block, float* to) {
    std::vector<float> exact(block_floats);
    PackConvWeights(c.shape, data.weights.data(), block, exact.data());
    RoundConvWeights(exact.data(), exact.size(), to);
  };
  GuardedBuffer weights(
      PackBlocks(c.shape.out_channels, PackedConvWeightsSize(c.shape) / 2, pack_block));
  GuardedBuffer in(BlockedInput(c, data)), rounded(RoundedConvInputSize(c.shape));
  for (size_t t = 0; t < RoundConvInputTaskCount(c.shape); ++t) {
    RunRoundConvInputTask(c.shape, in.data(), t, rounded.data());
  }
  ExpectExpected(c, data, rounded.data(), weights.data(), pack_block, &RunConvBlockedBf16Task);
}

INSTANTIATE_TEST_SUITE_P(Shapes, ConvBlockedBf16Test, testing::ValuesIn(kBlockedCases),
                         ConvCaseName);

TEST(ConvBlockedTest, ResidualMayBeTheOutput) {
  const ConvCase c = {"", {1, 40, 6, 6, 20, 6, 6, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kRelu, true};
  const ConvData data(c);
  const auto pack_block = [&](size_t block, float* to) {
    PackConvWeights(c.shape, data.weights.data(), block, to);
  };
  const std::vector<float> packed =
      PackBlocks(c.shape.out_channels, PackedConvWeightsSize(c.shape), pack_block);
  const std::vector<float> in = ToBlocked(data.in, 1, 40, 36, 0);
  std::vector<float> out = ToBlocked(data.residual, 1, 20, 36, 0);
  GuardedBuffer scratch(ConvBlockedScratchSize(c.shape, true) / 4, true);
  const ConvBlockedArgs args = {c.shape, in.data(), packed.data(), out.data(),
                                data.Epilogue(c, out.data())};
  for (size_t t = 0; t < ConvBlockedTaskCount(c.shape, true); ++t) {
    RunConvBlockedTask(args, t, scratch.data());
  }
  ExpectBlockedNear(out, data.expected, 1, 20, 36, data.tolerance);
}

TEST(ConvBlockedTest, NanReachesItsChannelsAndNotTheIdleLanes) {
  const Conv2dShape shape = {1, 3, 1, 1, 2, 1, 1};
  ForEveryTarget([&] {
    const std::vector<float> weights(6, 1.0f);
    const auto pack_block = [&](size_t block, float* to) {
      PackConvWeights(shape, weights.data(), block, to);
    };
    const std::vector<float> packed =
        PackBlocks(shape.out_channels, PackedConvWeightsSize(shape), pack_block);
    std::vector<float> in(16, 0.0f);
    in[1] = std::nanf("");
    std::vector<float> out(16, 1.0f);
    GuardedBuffer scratch(ConvBlockedScratchSize(shape, true) / 4, true);
    const ConvEpilogue relu = {.activation = {UnaryOp::kRelu}};
    RunConvBlockedTask({shape, in.data(), packed.data(), out.data(), relu}, 0, scratch.data());
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
    for (size_t lane = 2; lane < 16; ++lane) EXPECT_EQ(out[lane], 0.0f) << lane;
  });
}

TEST(ConvBlockedTest, RefusesGroupsThatShareABlock) {
  EXPECT_FALSE(ConvBlockedSupports({1, 24, 4, 4, 32, 4, 4, 2}));
  EXPECT_FALSE(ConvBlockedSupports({1, 32, 4, 4, 24, 4, 4, 2}));
  EXPECT_TRUE(ConvBlockedSupports({1, 32, 4, 4, 64, 4, 4, 2}));
}

class ConvStemTest : public testing::TestWithParam<ConvCase> {};

TEST_P(ConvStemTest, MatchesReferenceOnEveryTarget) {
  const ConvCase& c = GetParam();
  const ConvData data(c);
  const auto pack_block = [&](size_t block, float* to) {
    PackStemWeights(c.shape, data.weights.data(), block, to);
  };
  const std::vector<float> packed =
      PackBlocks(c.shape.out_channels, PackedStemWeightsSize(c.shape), pack_block);
  ForEveryTarget([&] {
    GuardedBuffer in(data.in);
    GuardedBuffer weights(packed);
    GuardedBuffer residual(ToBlocked(data.residual, c.residual ? c.shape.batch : 0,
                                     c.shape.out_channels, data.pixels, 0));
    GuardedBuffer out(BlockedSize(c.shape.batch, c.shape.out_channels, data.pixels));
    GuardedBuffer scratch(ConvStemScratchSize(c.shape) / 4, true);
    const ConvStemArgs args = {c.shape, in.data(), weights.data(), out.data(),
                               data.Epilogue(c, residual.data())};
    for (size_t t = 0; t < ConvStemTaskCount(c.shape); ++t) {
      RunConvStemTask(args, t, scratch.data());
    }
    ExpectBlockedNear(out.values(), data.expected, c.shape.batch, c.shape.out_channels, data.pixels,
                      data.tolerance);
  });
}

const ConvCase kStemCases[] = {
    {"one_pixel", {1, 1, 1, 1, 1, 1, 1}},
    {"7x7_stride_2", {2, 3, 31, 33, 64, 16, 17, 1, 7, 7, 2, 2, 1, 1, 3, 3}, kRelu},
    {"3x3", {1, 3, 13, 30, 16, 13, 30, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kClip, true},
    {"3x3_odd_channels", {1, 2, 8, 9, 35, 8, 9, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kClip},
    {"sigmoid", {1, 2, 8, 19, 35, 8, 19, 1, 3, 3, 1, 1, 1, 1, 1, 1}, kSigmoid, true},
    {"dilated", {1, 1, 20, 50, 16, 20, 50, 1, 3, 3, 1, 1, 2, 4, 2, 4}},
    {"dilated_stride_2", {1, 4, 20, 50, 20, 10, 25, 1, 3, 3, 2, 2, 2, 2, 2, 2}},
    {"patches", {1, 3, 32, 32, 40, 2, 2, 1, 16, 16, 16, 16}},
    {"stride_4", {1, 3, 67, 67, 17, 15, 15, 1, 11, 11, 4, 4}},
    {"stride_3", {1, 3, 30, 30, 17, 10, 10, 1, 3, 3, 3, 3}},
    {"audio", {1, 1, 1, 3000, 24, 1, 600, 1, 1, 25, 1, 5, 1, 1, 0, 12}, kRelu},
    {"pads_beyond_the_kernel", {1, 2, 3, 3, 16, 11, 11, 1, 3, 3, 1, 1, 1, 1, 5, 5}},
    {"many_tasks", {1, 3, 64, 250, 96, 64, 250, 1, 3, 3, 1, 1, 1, 1, 1, 1}},
};
INSTANTIATE_TEST_SUITE_P(Shapes, ConvStemTest, testing::ValuesIn(kStemCases), ConvCaseName);

}  // namespace
}  // namespace tenon::kernels
