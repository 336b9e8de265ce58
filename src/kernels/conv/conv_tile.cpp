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

PixelSplit SplitPixels(const Conv2dShape& shape, size_t flops_per_pixel, size_t min_pixels) {
  constexpr size_t kTaskFlops = 4 << 20;
  constexpr size_t kMaxWidth = 224;  // 16 tiles of 14; longer rows fall out of L2 between tap rows
  const size_t column_parts = std::max<size_t>(1, CeilDiv(shape.out_width, kMaxWidth));
  const size_t width = std::max<size_t>(1, CeilDiv(shape.out_width, column_parts));
  const size_t pixels = std::max(min_pixels, kTaskFlops / std::max<size_t>(1, flops_per_pixel));
  const size_t rows = CeilDiv(pixels, width);
  return {std::max<size_t>(1, CeilDiv(shape.out_height, rows)), column_parts};
}

}  // namespace tenon::kernels
