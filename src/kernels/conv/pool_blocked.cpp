#include "kernels/conv/pool_blocked.h"

#include <algorithm>
#include <limits>

#include "kernels/conv/conv_tile.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/pool_blocked.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv/block16-inl.h"
#include "kernels/min_max-inl.h"

#ifndef TENON_KERNELS_POOL_BLOCKED_PLAN_
#define TENON_KERNELS_POOL_BLOCKED_PLAN_
namespace tenon::kernels {
namespace {

PixelSplit SplitPool(const Conv2dShape& shape) {
  return SplitPixels(
      shape, {.flops_per_pixel = 4 * shape.kernel_height * shape.kernel_width * kChannelBlock,
              .tasks_per_part = shape.batch * ChannelBlocks(shape.in_channels)});
}

// The taps of one output coordinate in one dimension.
struct Window {
  ptrdiff_t start;  // input coordinate of tap 0
  TapRange taps;    // inside the input
  size_t padded;    // taps inside the padded input
};
Window MakeWindow(size_t out, size_t stride, size_t dilation, size_t taps, size_t size,
                  size_t pad_begin, size_t pad_end) {
  const ptrdiff_t start = FirstTap(out, stride, pad_begin);
  // No tap lies before the begin of the padding.
  const TapRange padded =
      ValidTaps(static_cast<ptrdiff_t>(out * stride), dilation, taps, pad_begin + size + pad_end);
  return {start, ValidTaps(start, dilation, taps, size), padded.last - padded.first};
}

}  // namespace
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using PoolBlockedTask = void (*)(const PoolBlockedArgs&, size_t);

namespace HWY_NAMESPACE {
namespace {

struct MaxPool {
  static constexpr float kInitial = -std::numeric_limits<float>::infinity();
  HWY_INLINE Block operator()(Block a, const Block& x) const {
    TENON_FOR_BLOCK(i, Block) a.v[i] = MaxOrSecond(a.v[i], x.v[i]);
    return a;
  }
};

struct SumPool {
  static constexpr float kInitial = 0;
  HWY_INLINE Block operator()(const Block& a, const Block& x) const { return AddBlocks(a, x); }
};

// Reduces rows x columns pixels at the given distances, in floats.
template <class Reduce>
HWY_INLINE Block ReduceWindow(const float* in, size_t rows, size_t row_stride, size_t columns,
                              size_t column_stride) {
  const Reduce reduce;
  Block result = SetBlock(Reduce::kInitial);
  for (size_t r = 0; r < rows; ++r, in += row_stride) {
    // Four chains hide the latency of windows as long as an image row.
    Block partial[3] = {SetBlock(Reduce::kInitial), SetBlock(Reduce::kInitial),
                        SetBlock(Reduce::kInitial)};
    const float* at = in;
    size_t c = 0;
    for (; c + 4 <= columns; c += 4, at += 4 * column_stride) {
      result = reduce(result, LoadBlock(at));
      for (size_t i = 0; i < 3; ++i) {
        partial[i] = reduce(partial[i], LoadBlock(at + (i + 1) * column_stride));
      }
    }
    if (c > 0) result = reduce(reduce(result, partial[0]), reduce(partial[1], partial[2]));
    for (; c < columns; ++c, at += column_stride) result = reduce(result, LoadBlock(at));
  }
  return result;
}

HWY_INLINE void StoreScaled(Block x, float factor, const Block& mask, float* out) {
  TENON_FOR_BLOCK(i, Block) x.v[i] = hn::Mul(x.v[i], hn::Set(DBlock(), factor));
  StoreBlock(AndBlocks(x, mask), out);
}

// Output columns of one row. `in` is the plane of input, `out` column 0 of the output row.
template <class Reduce>
void RunRow(const PoolBlockedArgs& args, const Window& y, const Range& columns, const Block& mask,
            const float* in, float* out) {
  const Conv2dShape& s = args.shape;
  const size_t in_row = s.in_width * kChannelBlock;
  const size_t rows = y.taps.last - y.taps.first;
  const ptrdiff_t top = y.start + static_cast<ptrdiff_t>(y.taps.first * s.dilation_height);
  const float* first_row = rows == 0 ? in : in + top * static_cast<ptrdiff_t>(in_row);
  for (size_t ox = columns.first; ox < columns.last; ++ox) {
    const Window x = MakeWindow(ox, s.stride_width, s.dilation_width, s.kernel_width, s.in_width,
                                s.pad_left, args.pad_right);
    const size_t taps = x.taps.last - x.taps.first;
    const ptrdiff_t left = x.start + static_cast<ptrdiff_t>(x.taps.first * s.dilation_width);
    const float* at = taps == 0 ? first_row : first_row + left * ptrdiff_t{kChannelBlock};
    const Block result = ReduceWindow<Reduce>(at, taps == 0 ? 0 : rows, s.dilation_height * in_row,
                                              taps, s.dilation_width * kChannelBlock);
    const bool pads_count = args.kind == PoolKind::kAverageIncludingPads;
    const size_t count = pads_count ? x.padded * y.padded : taps * rows;
    const float factor = args.kind == PoolKind::kMax ? 1.0f : 1.0f / static_cast<float>(count);
    StoreScaled(result, factor, mask, out + ox * kChannelBlock);
  }
}

void RunTask(const PoolBlockedArgs& args, size_t task) {
  const Conv2dShape& s = args.shape;
  const PixelSplit split = SplitPool(s);
  const size_t blocks = ChannelBlocks(s.in_channels);
  const size_t block = task % blocks;
  const size_t part = task / blocks % split.parts();
  const size_t plane = task / blocks / split.parts() * blocks + block;
  const TileLanes lanes = MakeTileLanes(nullptr, s.in_channels, block * kChannelBlock, 1);
  const Range rows = PartOf(s.out_height, split.row_parts, part / split.column_parts);
  const Range columns = PartOf(s.out_width, split.column_parts, part % split.column_parts);
  const float* in = args.in + plane * s.in_height * s.in_width * kChannelBlock;
  const Block mask = LoadBlock(lanes.masks);
  for (size_t oy = rows.first; oy < rows.last; ++oy) {
    const Window y = MakeWindow(oy, s.stride_height, s.dilation_height, s.kernel_height,
                                s.in_height, s.pad_top, args.pad_bottom);
    float* out = args.out + (plane * s.out_height + oy) * s.out_width * kChannelBlock;
    if (args.kind == PoolKind::kMax) {
      RunRow<MaxPool>(args, y, columns, mask, in, out);
    } else {
      RunRow<SumPool>(args, y, columns, mask, in, out);
    }
  }
}

}  // namespace

const PoolBlockedTask kPoolBlockedTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
size_t PoolBlockedTaskCount(const Conv2dShape& shape) {
  return shape.batch * ChannelBlocks(shape.in_channels) * SplitPool(shape).parts();
}

void RunPoolBlockedTask(const PoolBlockedArgs& args, size_t task) {
  TENON_SELECT_TABLE(PoolBlockedTask, kPoolBlockedTask)(args, task);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
