#include "kernels/conv/conv_grouped.h"

#include <algorithm>

#include "kernels/conv/conv_tile.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_grouped.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv/conv_rows-inl.h"

#ifndef TENON_KERNELS_CONV_GROUPED_PLAN_
#define TENON_KERNELS_CONV_GROUPED_PLAN_
namespace tenon::kernels {
namespace {

// Channels that are computed together; they form whole groups.
constexpr size_t kHalf = kChannelBlock / 2;

PixelSplit SplitGrouped(const Conv2dShape& shape) {
  return SplitPixels(shape, {.flops_per_pixel = 2 * kHalf * kChannelBlock * shape.kernel_height *
                                                shape.kernel_width,
                             .tasks_per_part = shape.batch * ChannelBlocks(shape.out_channels)});
}

}  // namespace
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using ConvGroupedTask = void (*)(const ConvGroupedArgs&, size_t, void*);

namespace HWY_NAMESPACE {
namespace {

void RunTask(const ConvGroupedArgs& args, size_t task, void* scratch) {
  const Conv2dShape& shape = args.shape;
  const PixelSplit split = SplitGrouped(shape);
  const size_t blocks = ChannelBlocks(shape.out_channels);
  const size_t block = task % blocks;
  const size_t part = task / blocks % split.parts();
  const size_t plane = task / blocks / split.parts() * blocks + block;
  const Range rows = PartOf(shape.out_height, split.row_parts, part / split.column_parts);
  const Range columns = PartOf(shape.out_width, split.column_parts, part % split.column_parts);
  const TileLanes lanes =
      MakeTileLanes(args.epilogue.bias, shape.out_channels, block * kChannelBlock, 1);
  const ClampRange clamp = EpilogueClamp(args.epilogue);
  const size_t out_offset = plane * shape.out_height * shape.out_width * kChannelBlock;
  // The activation needs whole blocks, so it is applied with the second half.
  const Finish nothing({});
  const BlockActivation activate(args.epilogue.activation);

  ConvTile tile;
  tile.planes = 1;
  tile.depth = kHalf;
  tile.weights_row_stride = shape.kernel_width * kHalf * kHalf;
  tile.low = clamp.low;
  tile.high = clamp.high;
  const size_t half_weights = shape.kernel_height * tile.weights_row_stride;
  for (size_t row = rows.first; row < rows.last; ++row) {
    for (size_t half = 0; half < 2; ++half) {
      const size_t lane = half * kHalf;
      const size_t channel = block * kChannelBlock + lane;
      tile.last_depth = std::min(kHalf, shape.in_channels - std::min(shape.in_channels, channel));
      tile.in = args.in + plane * shape.in_height * shape.in_width * kChannelBlock + lane;
      tile.weights = args.weights + (2 * block + half) * half_weights;
      tile.bias = lanes.bias + lane;
      tile.masks = lanes.masks + lane;
      tile.out = args.out + out_offset + lane;
      tile.addend = args.epilogue.residual ? args.epilogue.residual + out_offset + lane : nullptr;
      RunRow<HalfBlock>(shape, tile, 1, row, columns, nothing, static_cast<int32_t*>(scratch));
    }
    if (!activate) continue;
    const size_t first = (row * shape.out_width + columns.first) * kChannelBlock;
    activate(lanes.masks, columns.size(), args.out + out_offset + first);
  }
}

}  // namespace

const ConvGroupedTask kConvGroupedTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
bool ConvGroupedSupports(const Conv2dShape& shape) {
  if (shape.groups == 0 || shape.in_channels != shape.out_channels ||
      shape.in_channels % shape.groups != 0) {
    return false;
  }
  const size_t channels = shape.in_channels / shape.groups;
  return (channels == 2 || channels == 4 || channels == kHalf) &&
         shape.in_width < (size_t{1} << 26);
}

size_t ConvGroupedTaskCount(const Conv2dShape& shape) {
  return shape.batch * ChannelBlocks(shape.out_channels) * SplitGrouped(shape).parts();
}

size_t ConvGroupedScratchSize(const Conv2dShape& shape) {
  return shape.kernel_width * kMaxTilePixels * sizeof(int32_t);
}

void RunConvGroupedTask(const ConvGroupedArgs& args, size_t task, void* scratch) {
  TENON_SELECT_TABLE(ConvGroupedTask, kConvGroupedTask)(args, task, scratch);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
