#include "kernels/conv/conv_winograd_planar.h"

#include <algorithm>

#include "kernels/conv/conv_winograd.h"
#include "kernels/conv/reorder.h"

namespace tenon::kernels {
namespace {

constexpr size_t kTaps = 9;
constexpr size_t kThreads = 4;  // for which a step is divided, whatever there are

// Of all frames.
size_t InPixels(const Conv2dShape& shape) {
  return shape.frames.in * shape.in_height * shape.in_width;
}
size_t OutPixels(const Conv2dShape& shape) {
  return shape.frames.out * shape.out_height * shape.out_width;
}

// Packs the weights. Then, for some images at a time: their pixels to NCHW16c, and a residual to
// the place of the results; the convolution; and its results to NCHW.
enum Step : size_t { kToBlocked, kConvolve, kToPlanar, kStepsOfImages };

struct PlanarPlan {
  PlanarPlan(const Conv2dShape& shape, WinogradTile tile)
      : in_blocks(ChannelBlocks(shape.in_channels)),
        out_blocks(ChannelBlocks(shape.out_channels)),
        weights_floats(PackedWinogradWeightsSize(shape, tile)),
        in_image(BlockedSize(1, shape.in_channels, InPixels(shape))),
        out_image(BlockedSize(1, shape.out_channels, OutPixels(shape))) {
    // The images of one round stay in a shared cache.
    constexpr size_t kRoundFloats = (16 << 20) / sizeof(float);
    const size_t most =
        std::max<size_t>(1, kRoundFloats / std::max<size_t>(1, in_image + out_image));
    rounds = CeilDiv(shape.batch, most);
    round_images = rounds == 0 ? 0 : CeilDiv(shape.batch, rounds);
  }

  // The images of a step after the first one.
  Range Images(const Conv2dShape& shape, size_t step) const {
    return PartOf(shape.batch, rounds, (step - 1) / kStepsOfImages);
  }
  Step Kind(size_t step) const { return static_cast<Step>((step - 1) % kStepsOfImages); }

  size_t in_blocks;
  size_t out_blocks;
  size_t weights_floats;
  size_t in_image;  // floats of a blocked image
  size_t out_image;
  size_t rounds;        // over the images
  size_t round_images;  // at most
};

Conv2dShape WithBatch(Conv2dShape shape, size_t batch) {
  shape.batch = batch;
  return shape;
}

// The weights of one block of output channels, in the order of a convolution.
size_t TransposedBlockFloats(const Conv2dShape& shape) {
  return kChannelBlock * shape.in_channels * kTaps;
}

void PackBlock(const ConvWinogradPlanarArgs& args, size_t block, float* packed, float* scratch) {
  const Conv2dShape& shape = args.shape;
  if (!args.of_transpose) {
    return PackWinogradWeights(shape, args.tile, args.weights, block, packed);
  }
  const size_t first = block * kChannelBlock;
  Conv2dShape part = shape;
  part.out_channels = std::min(kChannelBlock, shape.out_channels - first);
  for (size_t i = 0; i < shape.in_channels; ++i) {
    const float* from = args.weights + (i * shape.out_channels + first) * kTaps;
    for (size_t o = 0; o < part.out_channels; ++o) {
      float* to = scratch + (o * shape.in_channels + i) * kTaps;
      std::reverse_copy(from + o * kTaps, from + (o + 1) * kTaps, to);
    }
  }
  PackWinogradWeights(part, args.tile, scratch, 0, packed);
}

}  // namespace

ConvSteps ConvWinogradPlanarSteps(const Conv2dShape& shape, WinogradTile tile) {
  const PlanarPlan plan(shape, tile);
  size_t scratch = TransposedBlockFloats(shape) * sizeof(float);
  // Rounds have at most two different sizes.
  for (const size_t images : {plan.round_images, plan.round_images - (plan.round_images > 0)}) {
    scratch =
        std::max(scratch, ConvWinogradScratchSize(WithBatch(shape, images), tile, true, kThreads));
  }
  const size_t images_floats = plan.round_images * (plan.in_image + plan.out_image);
  return {1 + plan.rounds * kStepsOfImages, (plan.weights_floats + images_floats) * sizeof(float),
          scratch};
}

size_t ConvWinogradPlanarTaskCount(const ConvWinogradPlanarArgs& args, size_t step) {
  const PlanarPlan plan(args.shape, args.tile);
  if (step == 0) return plan.out_blocks;
  const size_t images = plan.Images(args.shape, step).size();
  switch (plan.Kind(step)) {
    case kToBlocked:
      return images * (plan.in_blocks + (args.epilogue.residual ? plan.out_blocks : 0));
    case kToPlanar:
      return images * plan.out_blocks;
    default:
      return ConvWinogradTaskCount(WithBatch(args.shape, images), args.tile, true, kThreads);
  }
}

void RunConvWinogradPlanarTask(const ConvWinogradPlanarArgs& args, size_t step, size_t task,
                               float* shared, float* scratch) {
  const Conv2dShape& shape = args.shape;
  const PlanarPlan plan(shape, args.tile);
  float* const weights = shared;
  if (step == 0) {
    const size_t block_floats = plan.weights_floats / plan.out_blocks;
    return PackBlock(args, task, weights + task * block_floats, scratch);
  }
  const Range images = plan.Images(shape, step);
  const size_t out_offset = images.first * shape.out_channels * OutPixels(shape);
  float* const in = weights + plan.weights_floats;
  float* const out = in + plan.round_images * plan.in_image;
  switch (plan.Kind(step)) {
    case kToBlocked: {
      const float* from = args.in + images.first * shape.in_channels * InPixels(shape);
      const size_t in_tasks = images.size() * plan.in_blocks;
      if (task >= in_tasks) {
        return RunReorderToBlockedTask({images.size(), shape.out_channels, OutPixels(shape),
                                        args.epilogue.residual + out_offset, out},
                                       task - in_tasks);
      }
      return RunReorderToBlockedTask({images.size(), shape.in_channels, InPixels(shape), from, in},
                                     task);
    }
    case kToPlanar: {
      return RunReorderToPlanarTask(
          {images.size(), shape.out_channels, OutPixels(shape), out, args.out + out_offset}, task);
    }
    default: {
      ConvWinogradArgs winograd = {.shape = WithBatch(shape, images.size()),
                                   .tile = args.tile,
                                   .in = in,
                                   .weights = weights,
                                   .out = out,
                                   .epilogue = args.epilogue,
                                   .threads = kThreads};
      if (args.epilogue.residual) winograd.epilogue.residual = out;
      return RunConvWinogradTask(winograd, task, scratch);
    }
  }
}

}  // namespace tenon::kernels
