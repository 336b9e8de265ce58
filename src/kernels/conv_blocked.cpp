#include "kernels/conv_blocked.h"

#include <algorithm>

#include "kernels/conv_blocked_plan.h"
#include "kernels/conv_tile.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv_blocked.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using ConvBlockedTask = void (*)(const ConvBlockedArgs&, size_t, void*);

namespace HWY_NAMESPACE {
namespace {

// Positions of the taps of output pixels [first, first + pixels) of a row.
class Columns {
 public:
  Columns(const Conv2dShape& shape, size_t first, size_t pixels)
      : shape_(shape),
        pixels_(pixels),
        start_(FirstTap(first, shape.stride_width, shape.pad_left)),
        reach_(static_cast<ptrdiff_t>((pixels - 1) * shape.stride_width)) {}

  // No tap lies outside the input.
  bool Inside() const {
    const size_t taps_reach = (shape_.kernel_width - 1) * shape_.dilation_width;
    return start_ >= 0 && start_ + reach_ + static_cast<ptrdiff_t>(taps_reach) <
                              static_cast<ptrdiff_t>(shape_.in_width);
  }

  void SetStrided(ConvTile& tile) const {
    tile.columns = shape_.kernel_width;
    tile.column_weights = 0;
    tile.column_offset = start_ * static_cast<ptrdiff_t>(kChannelBlock);
    tile.column_stride = static_cast<ptrdiff_t>(shape_.dilation_width * kChannelBlock);
  }

  // Fills the table of offsets, leaving out the columns of taps that meet no input.
  void SetTabulated(int32_t* offsets, ConvTile& tile) const {
    const TapRange of_first = Valid(start_);
    const TapRange of_last = Valid(start_ + reach_);
    const size_t first = std::min(of_first.first, of_last.first);
    const size_t last = std::max(of_first.last, of_last.last);
    tile.columns = last - first;
    tile.column_weights = first * kChannelBlock * kChannelBlock;
    tile.pixel_offsets = offsets;
    for (size_t s = first; s < last; ++s) {
      for (size_t p = 0; p < pixels_; ++p) {
        const size_t offset = p * shape_.stride_width + s * shape_.dilation_width;
        const ptrdiff_t x = start_ + static_cast<ptrdiff_t>(offset);
        const bool inside = x >= 0 && x < static_cast<ptrdiff_t>(shape_.in_width);
        *offsets++ = inside ? static_cast<int32_t>(x * ptrdiff_t{kChannelBlock}) : -1;
      }
    }
  }

 private:
  TapRange Valid(ptrdiff_t start) const {
    return ValidTaps(start, shape_.dilation_width, shape_.kernel_width, shape_.in_width);
  }

  const Conv2dShape& shape_;
  size_t pixels_;
  ptrdiff_t start_;
  ptrdiff_t reach_;
};

// Sets the columns of `tile`, which is set up for the row, and runs it.
void RunColumns(const Conv2dShape& shape, ConvTile& tile, size_t blocks, size_t first,
                size_t pixels, int32_t* offsets) {
  const Columns columns(shape, first, pixels);
  const bool strided = shape.stride_width <= 2 && columns.Inside();
  if (!strided) {
    columns.SetTabulated(offsets, tile);
    RunTileBlocks<TabulatedPixels>(tile, blocks, pixels);
    return;
  }
  columns.SetStrided(tile);
  if (shape.stride_width == 1) {
    RunTileBlocks<StridedPixels<kChannelBlock>>(tile, blocks, pixels);
  } else {
    RunTileBlocks<StridedPixels<2 * kChannelBlock>>(tile, blocks, pixels);
  }
}

// `tile` is set up for the blocks of channels; row and columns are missing.
void RunRow(const Conv2dShape& shape, ConvTile tile, size_t blocks, size_t row,
            const Range& columns, const Finish& finish, int32_t* offsets) {
  const ptrdiff_t y = FirstTap(row, shape.stride_height, shape.pad_top);
  const TapRange taps = ValidTaps(y, shape.dilation_height, shape.kernel_height, shape.in_height);
  const ptrdiff_t in_row = static_cast<ptrdiff_t>(shape.in_width * kChannelBlock);
  tile.rows = taps.last - taps.first;
  tile.row_stride = static_cast<ptrdiff_t>(shape.dilation_height) * in_row;
  if (tile.rows > 0) tile.in += y * in_row + static_cast<ptrdiff_t>(taps.first) * tile.row_stride;
  tile.weights += taps.first * tile.weights_row_stride;
  const size_t tiles = CeilDiv(columns.size(), kTilePixels);
  const size_t row_offset = row * shape.out_width * kChannelBlock;
  float* const out = tile.out + row_offset;
  const float* const addend = tile.addend ? tile.addend + row_offset : nullptr;
  for (size_t t = 0; t < tiles; ++t) {
    const Range part = PartOf(columns.size(), tiles, t);
    const size_t first = columns.first + part.first;
    tile.out = out + first * kChannelBlock;
    if (addend) tile.addend = addend + first * kChannelBlock;
    RunColumns(shape, tile, blocks, first, part.size(), offsets);
    finish(tile, blocks, part.size());
  }
}

void RunTask(const ConvBlockedArgs& args, size_t task, void* scratch) {
  const BlockedPlan plan(args.shape);
  const Conv2dShape& shape = plan.shape;
  const BlockedPlan::Task at = plan.Locate(task);
  const TileLanes lanes = MakeTileLanes(args.epilogue.bias, shape.out_channels,
                                        at.out_block * kChannelBlock, at.blocks);
  const size_t in_plane = shape.in_height * shape.in_width * kChannelBlock;
  const size_t out_plane = shape.out_height * shape.out_width * kChannelBlock;
  const size_t out_offset =
      (at.image * ChannelBlocks(shape.out_channels) + at.out_block) * out_plane;
  const ClampRange clamp = EpilogueClamp(args.epilogue);

  ConvTile tile;
  tile.plane_stride = static_cast<ptrdiff_t>(in_plane);
  tile.depth = kChannelBlock;
  tile.weights_row_stride = shape.kernel_width * kChannelBlock * kChannelBlock;
  tile.weights_plane_stride = shape.kernel_height * tile.weights_row_stride;
  tile.weights_block_stride = plan.in_blocks * tile.weights_plane_stride;
  tile.out = args.out + out_offset;
  tile.out_block_stride = out_plane;
  tile.masks = lanes.masks;

  for (size_t c = 0; c < plan.chunks; ++c) {
    const Range chunk = PartOf(plan.in_blocks, plan.chunks, c);
    const bool last = c + 1 == plan.chunks;
    const size_t first_plane =
        at.image * ChannelBlocks(shape.in_channels) + at.group * plan.in_blocks + chunk.first;
    tile.in = args.in + first_plane * in_plane;
    tile.planes = chunk.size();
    tile.last_depth = last ? plan.last_depth : kChannelBlock;
    tile.weights = args.weights + at.out_block * tile.weights_block_stride +
                   chunk.first * tile.weights_plane_stride;
    tile.bias = c == 0 ? lanes.bias : nullptr;
    tile.addend = tile.out;
    if (c == 0)
      tile.addend = args.epilogue.residual ? args.epilogue.residual + out_offset : nullptr;
    tile.low = last ? clamp.low : kNoClamp.low;
    tile.high = last ? clamp.high : kNoClamp.high;
    const Finish finish(args.epilogue.activation, last);
    for (size_t row = at.rows.first; row < at.rows.last; ++row) {
      RunRow(shape, tile, at.blocks, row, at.columns, finish, static_cast<int32_t*>(scratch));
    }
  }
}

}  // namespace

const ConvBlockedTask kConvBlockedTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
bool ConvBlockedSupports(const Conv2dShape& shape) {
  const bool whole_groups = shape.groups > 0 &&
                            shape.in_channels % (shape.groups * kChannelBlock) == 0 &&
                            shape.out_channels % (shape.groups * kChannelBlock) == 0;
  return (shape.groups == 1 || whole_groups) && shape.in_width < (size_t{1} << 26);
}

size_t ConvBlockedTaskCount(const Conv2dShape& shape) { return BlockedPlan(shape).TaskCount(); }

size_t ConvBlockedScratchSize(const Conv2dShape& shape) {
  return shape.kernel_width * kMaxTilePixels * sizeof(int32_t);
}

void RunConvBlockedTask(const ConvBlockedArgs& args, size_t task, void* scratch) {
  TENON_SELECT_TABLE(ConvBlockedTask, kConvBlockedTask)(args, task, scratch);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
