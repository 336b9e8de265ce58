#include "kernels/conv/conv_stem.h"

#include <algorithm>

#include "kernels/conv/conv_tile.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_stem.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv/conv_tile-inl.h"

#ifndef TENON_KERNELS_CONV_STEM_PLAN_
#define TENON_KERNELS_CONV_STEM_PLAN_
namespace tenon::kernels {
namespace {

// Division into tasks, and the window of padded input that a task copies to its scratch.
struct StemPlan {
  explicit StemPlan(const Conv2dShape& shape)
      : split(SplitPixels(
            shape,
            {.flops_per_pixel = 2 * shape.in_channels * shape.kernel_height * shape.kernel_width *
                                ChannelBlocks(shape.out_channels) * kChannelBlock,
             .tasks_per_part = shape.batch})),
        window_rows(Window(CeilDiv(shape.out_height, split.row_parts), shape.stride_height,
                           shape.kernel_height, shape.dilation_height)),
        window_columns(Window(CeilDiv(shape.out_width, split.column_parts), shape.stride_width,
                              shape.kernel_width, shape.dilation_width)) {}

  static size_t Window(size_t pixels, size_t stride, size_t taps, size_t dilation) {
    return (std::max<size_t>(1, pixels) - 1) * stride + (taps - 1) * dilation + 1;
  }

  PixelSplit split;
  size_t window_rows;
  size_t window_columns;
};

// Offsets of a tile's taps, rounded up so that what follows them stays aligned.
size_t OffsetCount(const Conv2dShape& shape) {
  return CeilDiv(shape.kernel_width * kMaxTilePixels, 16) * 16;
}

// Copies rows [first_row, first_row + rows) by columns [first_column, first_column + columns) of
// one channel, zero outside the image.
void CopyWindow(const Conv2dShape& shape, const float* in, ptrdiff_t first_row, size_t rows,
                ptrdiff_t first_column, size_t columns, float* out) {
  const ptrdiff_t width = static_cast<ptrdiff_t>(shape.in_width);
  const ptrdiff_t end = first_column + static_cast<ptrdiff_t>(columns);
  const ptrdiff_t left = std::clamp<ptrdiff_t>(first_column, 0, width);
  const ptrdiff_t right = std::clamp<ptrdiff_t>(end, left, width);
  for (size_t r = 0; r < rows; ++r, out += columns) {
    const ptrdiff_t y = first_row + static_cast<ptrdiff_t>(r);
    if (y < 0 || y >= static_cast<ptrdiff_t>(shape.in_height) || left == right) {
      std::fill_n(out, columns, 0.0f);
      continue;
    }
    float* to = std::fill_n(out, left - first_column, 0.0f);
    to = std::copy(in + y * width + left, in + y * width + right, to);
    std::fill(to, out + columns, 0.0f);
  }
}

}  // namespace
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using ConvStemTask = void (*)(const ConvStemArgs&, size_t, void*);

namespace HWY_NAMESPACE {
namespace {

void RunColumns(const Conv2dShape& shape, ConvTile& tile, size_t blocks, size_t pixels,
                int32_t* offsets) {
  switch (shape.stride_width) {
    case 1:
      return RunTileBlocks<StridedPixels<1>>(tile, blocks, pixels);
    case 2:
      return RunTileBlocks<StridedPixels<2>>(tile, blocks, pixels);
    default:
      break;
  }
  tile.pixel_offsets = offsets;
  for (size_t s = 0; s < tile.columns; ++s) {
    for (size_t p = 0; p < pixels; ++p) {
      *offsets++ = static_cast<int32_t>(s * shape.dilation_width + p * shape.stride_width);
    }
  }
  RunTileBlocks<TabulatedPixels>(tile, blocks, pixels);
}

// All pixels of a task for one pair of output blocks. `tile` lacks the offsets of in, out and
// addend.
void RunBlocks(const Conv2dShape& shape, const StemPlan& plan, ConvTile tile, size_t blocks,
               const Range& rows, const Range& columns, const Finish& finish, int32_t* offsets) {
  const float* const in = tile.in;
  const float* const addend = tile.addend;
  float* const out = tile.out;
  const size_t tiles = CeilDiv(columns.size(), kTilePixels);
  for (size_t row = 0; row < rows.size(); ++row) {
    for (size_t t = 0; t < tiles; ++t) {
      const Range part = PartOf(columns.size(), tiles, t);
      const size_t offset =
          ((rows.first + row) * shape.out_width + columns.first + part.first) * kChannelBlock;
      tile.in =
          in + row * shape.stride_height * plan.window_columns + part.first * shape.stride_width;
      tile.out = out + offset;
      if (addend) tile.addend = addend + offset;
      RunColumns(shape, tile, blocks, part.size(), offsets);
      finish(tile, blocks, part.size());
    }
  }
}

void RunTask(const ConvStemArgs& args, size_t task, void* scratch) {
  const Conv2dShape& shape = args.shape;
  const StemPlan plan(shape);
  const size_t image = task / plan.split.parts();
  const size_t part = task % plan.split.parts();
  const Range rows = PartOf(shape.out_height, plan.split.row_parts, part / plan.split.column_parts);
  const Range columns =
      PartOf(shape.out_width, plan.split.column_parts, part % plan.split.column_parts);
  int32_t* offsets = static_cast<int32_t*>(scratch);
  float* window = static_cast<float*>(scratch) + OffsetCount(shape);
  const size_t window_plane = plan.window_rows * plan.window_columns;
  for (size_t c = 0; c < shape.in_channels; ++c) {
    const float* plane =
        args.in + (image * shape.in_channels + c) * shape.in_height * shape.in_width;
    CopyWindow(shape, plane, FirstTap(rows.first, shape.stride_height, shape.pad_top),
               plan.window_rows, FirstTap(columns.first, shape.stride_width, shape.pad_left),
               plan.window_columns, window + c * window_plane);
  }

  const ClampRange clamp = EpilogueClamp(args.epilogue);
  const size_t out_plane = shape.out_height * shape.out_width * kChannelBlock;
  ConvTile tile;
  tile.in = window;
  tile.planes = shape.in_channels;
  tile.plane_stride = static_cast<ptrdiff_t>(window_plane);
  tile.rows = shape.kernel_height;
  tile.row_stride = static_cast<ptrdiff_t>(shape.dilation_height * plan.window_columns);
  // Neighbouring taps are neighbours in memory, unless dilated.
  const bool dense = shape.dilation_width == 1;
  tile.columns = dense ? 1 : shape.kernel_width;
  tile.depth = tile.last_depth = dense ? shape.kernel_width : 1;
  tile.column_stride = static_cast<ptrdiff_t>(shape.dilation_width);
  tile.weights_row_stride = shape.kernel_width * kChannelBlock;
  tile.weights_plane_stride = shape.kernel_height * tile.weights_row_stride;
  tile.weights_block_stride = shape.in_channels * tile.weights_plane_stride;
  tile.out_block_stride = out_plane;
  tile.low = clamp.low;
  tile.high = clamp.high;

  const Finish finish(args.epilogue.activation);
  const size_t out_blocks = ChannelBlocks(shape.out_channels);
  for (size_t o = 0; o < out_blocks; o += kMaxTileBlocks) {
    const size_t blocks = std::min(kMaxTileBlocks, out_blocks - o);
    const TileLanes lanes =
        MakeTileLanes(args.epilogue.bias, shape.out_channels, o * kChannelBlock, blocks);
    const size_t out_offset = (image * out_blocks + o) * out_plane;
    tile.weights = args.weights + o * tile.weights_block_stride;
    tile.bias = lanes.bias;
    tile.masks = lanes.masks;
    tile.out = args.out + out_offset;
    tile.addend = args.epilogue.residual ? args.epilogue.residual + out_offset : nullptr;
    RunBlocks(shape, plan, tile, blocks, rows, columns, finish, offsets);
  }
}

}  // namespace

const ConvStemTask kConvStemTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
size_t ConvStemTaskCount(const Conv2dShape& shape) {
  return shape.batch * StemPlan(shape).split.parts();
}

size_t ConvStemScratchSize(const Conv2dShape& shape) {
  const StemPlan plan(shape);
  return (OffsetCount(shape) + shape.in_channels * plan.window_rows * plan.window_columns) *
         sizeof(float);
}

void RunConvStemTask(const ConvStemArgs& args, size_t task, void* scratch) {
  TENON_SELECT_TABLE(ConvStemTask, kConvStemTask)(args, task, scratch);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
