#include "kernels/conv/conv_winograd.h"

#include "conv_cases.h"
#include "kernels/conv/conv_winograd_planar.h"
#include "kernels/conv/winograd_gradient.h"

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
    const auto run = [&](const float* packed_weights, size_t threads) {
      const bool is_packed = packed_weights != nullptr;
      GuardedBuffer scratch(ConvWinogradScratchSize(c.shape, tile, is_packed, threads) / 4, true);
      const ConvEpilogue epilogue = data.Epilogue(c, residual.data());
      const ConvWinogradArgs args = {c.shape,    tile,     in.data(), packed_weights,
                                     out.data(), epilogue, &pack,     threads};
      for (size_t t = 0; t < ConvWinogradTaskCount(c.shape, tile, is_packed, threads); ++t) {
        RunConvWinogradTask(args, t, scratch.data());
      }
      return out.values();
    };
    const std::vector<float> got = run(weights.data(), 1);
    ExpectBlockedNear(got, data.expected, c.shape.batch, c.shape.out_channels, data.pixels,
                      tolerance);
    for (const size_t threads : {1, 2, 5}) {
      EXPECT_EQ(run(weights.data(), threads), got) << "divided for " << threads << " threads";
      EXPECT_EQ(run(nullptr, threads), got) << "weights packed by the tasks";
    }
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

// Runs the steps of a convolution; `run` computes a task.
void RunSteps(const ConvSteps& steps, const std::function<size_t(size_t)>& task_count,
              const std::function<void(size_t, size_t, float*, float*)>& run) {
  GuardedBuffer shared(steps.shared_bytes / sizeof(float), true);
  for (size_t step = 0; step < steps.count; ++step) {
    for (size_t task = 0; task < task_count(step); ++task) {
      GuardedBuffer scratch(steps.scratch_bytes / sizeof(float), true);
      run(step, task, shared.data(), scratch.data());
    }
  }
}

void CheckPlanar(const ConvCase& c, const ConvData& data, const std::vector<float>& stored_weights,
                 bool of_transpose, WinogradTile tile, double tolerance) {
  SCOPED_TRACE(testing::Message() << "tile " << static_cast<int>(tile));
  ForEveryTarget([&] {
    GuardedBuffer in(data.in);
    GuardedBuffer weights(stored_weights);
    GuardedBuffer residual(data.residual);
    GuardedBuffer out(data.expected.size());
    const ConvWinogradPlanarArgs args = {c.shape,
                                         tile,
                                         in.data(),
                                         weights.data(),
                                         of_transpose,
                                         out.data(),
                                         data.Epilogue(c, residual.data())};
    RunSteps(
        ConvWinogradPlanarSteps(c.shape, tile),
        [&](size_t step) { return ConvWinogradPlanarTaskCount(args, step); },
        [&](size_t step, size_t task, float* shared, float* scratch) {
          RunConvWinogradPlanarTask(args, step, task, shared, scratch);
        });
    const std::vector<float> got = out.values();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], data.expected[i], tolerance) << i;
  });
}

TEST_P(ConvWinogradTest, MatchesReferenceInNchw) {
  const ConvCase& c = GetParam();
  const ConvData data(c);
  // The weights of the convolution whose input gradient this is.
  const size_t in = c.shape.in_channels, out = c.shape.out_channels;
  std::vector<float> transposed(data.weights.size());
  for (size_t i = 0; i < data.weights.size(); ++i) {
    transposed[(i / 9 % in * out + i / 9 / in) * 9 + 8 - i % 9] = data.weights[i];
  }
  const double deviation = std::sqrt(static_cast<double>(in));
  for (const WinogradTile tile : {WinogradTile::k2x2, WinogradTile::k4x4}) {
    const double tolerance = 1e-6 + (tile == WinogradTile::k2x2 ? 4e-6 : 1.6e-5) * deviation;
    CheckPlanar(c, data, data.weights, false, tile, tolerance);
    CheckPlanar(c, data, transposed, true, tile, tolerance);
  }
}

// [first][second][size] as [second][first][size].
std::vector<float> Swapped(const std::vector<float>& from, size_t first, size_t second,
                           size_t size) {
  std::vector<float> to(from.size());
  for (size_t i = 0; i < from.size(); ++i) {
    to[(i / size % second * first + i / size / second) * size + i % size] = from[i];
  }
  return to;
}

TEST_P(ConvWinogradTest, GradientMatchesReference) {
  const Conv2dShape& shape = GetParam().shape;
  if (shape.batch == 0) return;
  const ConvData data(GetParam());
  const std::vector<float> dy = RandomFloats(shape.batch * shape.out_channels * data.pixels, 5);
  // The gradient is the convolution of the input by dy, with images for channels.
  Conv2dShape of_dy = shape;
  of_dy.batch = shape.in_channels;
  of_dy.in_channels = shape.batch;
  of_dy.kernel_height = shape.out_height;
  of_dy.kernel_width = shape.out_width;
  of_dy.out_height = of_dy.out_width = 3;
  const std::vector<double> expected = ReferenceConv(
      of_dy, Swapped(data.in, shape.batch, shape.in_channels, shape.in_height * shape.in_width),
      Swapped(dy, shape.batch, shape.out_channels, data.pixels));
  const double deviation = std::sqrt(static_cast<double>(shape.batch * data.pixels));
  ForEveryTarget([&] {
    GuardedBuffer in(data.in);
    GuardedBuffer upper(dy);
    GuardedBuffer dw(expected.size());
    RunSteps(
        WinogradGradientSteps(shape),
        [&](size_t step) { return WinogradGradientTaskCount(shape, step); },
        [&](size_t step, size_t task, float* shared, float* scratch) {
          RunWinogradGradientTask({shape, in.data(), upper.data(), dw.data()}, step, task, shared,
                                  scratch);
        });
    const std::vector<float> got = dw.values();
    for (size_t i = 0; i < got.size(); ++i) {
      const size_t o = i / 9 / shape.in_channels, c = i / 9 % shape.in_channels;
      ASSERT_NEAR(got[i], expected[(c * shape.out_channels + o) * 9 + i % 9],
                  1e-6 + 1e-5 * deviation)
          << i;
    }
  });
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
    {"rounds_of_images", Shape(5, 3, 180, 180, 2)},
    {"no_images", Shape(0, 16, 8, 8, 16)},
};
INSTANTIATE_TEST_SUITE_P(Shapes, ConvWinogradTest, testing::ValuesIn(kWinogradCases), ConvCaseName);

constexpr Conv2dShape WithFrames(Conv2dShape shape, ConvDim frames) {
  shape.frames = frames;
  return shape;
}

const ConvCase kFramesCases[] = {
    {"three_taps", WithFrames(Shape(1, 16, 8, 8, 16), {4, 4, 3, 1, 1, 1}), UnaryOp::kRelu, true},
    {"no_pads", WithFrames(Shape(2, 32, 6, 5, 20), {4, 2, 3, 1, 1, 0})},
    {"strides", WithFrames(Shape(1, 16, 9, 7, 40), {7, 4, 3, 2, 1, 1}), UnaryOp::kClip},
    {"dilations", WithFrames(Shape(2, 48, 5, 6, 16), {6, 4, 2, 1, 3, 1}), UnaryOp::kSigmoid, true},
    {"one_tap", WithFrames(Shape(1, 20, 6, 6, 16), {3, 3, 1, 1, 1, 0}), UnaryOp::kRelu, true},
    {"part_of_a_block", WithFrames(Shape(1, 9, 7, 7, 37), {3, 5, 3, 1, 1, 2}), UnaryOp::kClip,
     true},
    {"one_frame_of_pads", WithFrames(Shape(1, 16, 4, 4, 16), {1, 1, 3, 1, 1, 1})},
    {"pads_beyond_the_taps", WithFrames(Shape(1, 16, 4, 4, 16), {2, 8, 3, 1, 1, 4})},
    {"rounds_of_images", WithFrames(Shape(3, 3, 90, 90, 2), {5, 5, 3, 1, 1, 1})},
};
class ConvWinogradFramesTest : public testing::TestWithParam<ConvCase> {};
INSTANTIATE_TEST_SUITE_P(Shapes, ConvWinogradFramesTest, testing::ValuesIn(kFramesCases),
                         ConvCaseName);

TEST_P(ConvWinogradFramesTest, MatchesReferenceInNchw) {
  const ConvCase& c = GetParam();
  ASSERT_TRUE(ConvWinogradSupports(c.shape));
  const ConvData data(c);
  const auto channels = static_cast<double>(c.shape.in_channels * c.shape.frames.kernel);
  const double deviation = std::sqrt(channels);
  CheckPlanar(c, data, data.weights, false, WinogradTile::k2x2, 1e-6 + 4e-6 * deviation);
  CheckPlanar(c, data, data.weights, false, WinogradTile::k4x4, 1e-6 + 1.6e-5 * deviation);
}

TEST(ConvWinogradTest, ChoosesTheTileByShape) {
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 64, 56, 56, 64)), WinogradTile::k4x4);
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 256, 14, 14, 256)), WinogradTile::k4x4);
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 512, 7, 7, 512)), WinogradTile::k2x2);
  EXPECT_EQ(ChooseWinogradTile(Shape(8, 512, 7, 7, 512)), WinogradTile::k4x4);
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 512, 1, 1, 512)), WinogradTile::kNone);
  EXPECT_EQ(ChooseWinogradTile(Shape(1, 3, 224, 224, 64)), WinogradTile::kNone);
}

TEST(ConvWinogradTest, ChoosesTheWayByShapeInNchw) {
  EXPECT_EQ(ChoosePlanarWinogradTile(Shape(8, 64, 56, 56, 64)), WinogradTile::k4x4);
  EXPECT_TRUE(WinogradGradientWorthwhile(Shape(8, 64, 56, 56, 64)));
  // The weights are transformed for too few pixels.
  EXPECT_EQ(ChoosePlanarWinogradTile(Shape(1, 64, 8, 8, 64)), WinogradTile::kNone);
  EXPECT_FALSE(WinogradGradientWorthwhile(Shape(1, 64, 8, 8, 64)));
  EXPECT_EQ(ChoosePlanarWinogradTile(Shape(8, 3, 224, 224, 64)), WinogradTile::kNone);
  EXPECT_FALSE(WinogradGradientWorthwhile(Shape(8, 3, 224, 224, 64)));
  const Conv2dShape video = WithFrames(Shape(1, 64, 56, 56, 64), {8, 8, 3, 1, 1, 1});
  EXPECT_EQ(ChoosePlanarWinogradTile(video), WinogradTile::k4x4);
  EXPECT_FALSE(WinogradGradientWorthwhile(video));
  const Conv2dShape deep = WithFrames(Shape(1, 512, 7, 7, 512), {1, 1, 3, 1, 1, 1});
  EXPECT_EQ(ChoosePlanarWinogradTile(deep), WinogradTile::kNone);
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
