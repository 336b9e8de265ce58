#include "kernels/conv/conv_tile.h"

#include <algorithm>
#include <bit>

namespace tenon::kernels {

TileLanes MakeTileLanes(const float* bias, size_t out_channels, size_t first_channel,
                        size_t blocks) {
  TileLanes lanes = {};
  const size_t count = std::min(blocks * kChannelBlock, out_channels - first_channel);
  if (bias) std::copy_n(bias + first_channel, count, lanes.bias);
  std::fill_n(lanes.masks, count, std::bit_cast<float>(~uint32_t{0}));
  return lanes;
}

ClampRange EpilogueClamp(const ConvEpilogue& epilogue) {
  switch (epilogue.activation.op) {
    case UnaryOp::kRelu:
      return {0, kNoClamp.high};
    case UnaryOp::kClip:
      return {epilogue.activation.alpha, epilogue.activation.beta};
    default:
      return kNoClamp;
  }
}

PixelSplit SplitPixels(const Conv2dShape& shape, const PixelSplitOptions& options) {
  constexpr size_t kTaskFlops = 4 << 20;
  constexpr size_t kLeastTaskFlops = kTaskFlops / 8;
  constexpr size_t kFewTasks = 16;
  constexpr size_t kMaxBands = 4;
  constexpr size_t kMinBandPixels = 56;
  constexpr size_t kMaxWidth = 224;  // 16 tiles of 14; longer rows fall out of L2 between tap rows
  const auto pixels_for = [&](size_t flops) {
    const size_t pixels = flops / std::max<size_t>(1, options.flops_per_pixel);
    return std::max({size_t{1}, options.min_pixels, pixels});
  };
  const size_t column_parts = std::max<size_t>(1, CeilDiv(shape.out_width, kMaxWidth));
  const size_t width = std::max<size_t>(1, CeilDiv(shape.out_width, column_parts));
  const size_t rows = CeilDiv(pixels_for(kTaskFlops), width);
  const PixelSplit split = {std::max<size_t>(1, CeilDiv(shape.out_height, rows)), column_parts};

  const size_t pixels = shape.out_height * shape.out_width;
  const size_t enough = CeilDiv(kFewTasks, std::max<size_t>(1, options.tasks_per_part));
  size_t parts = std::min(enough, pixels / pixels_for(kLeastTaskFlops));
  if (options.in_bands) {
    parts = std::max(parts, std::min(kMaxBands, std::bit_floor(pixels / kMinBandPixels)));
  }
  if (parts <= split.parts()) return split;
  if (shape.out_height == 1) return {1, parts};
  return {std::min(CeilDiv(parts, column_parts), shape.out_height), column_parts};
}

}  // namespace tenon::kernels
