#include "kernels/conv/conv_depthwise.h"

#include <algorithm>

#include "kernels/conv/conv_tile.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_depthwise.cpp"
#include <hwy/foreach_target.h>

#include "kernels/conv/block16-inl.h"
#include "kernels/fused-inl.h"
#include "kernels/min_max-inl.h"

#ifndef TENON_KERNELS_CONV_DEPTHWISE_PLAN_
#define TENON_KERNELS_CONV_DEPTHWISE_PLAN_
namespace tenon::kernels {
namespace {

struct DepthwisePlan {
  explicit DepthwisePlan(const Conv2dShape& given)
      : shape(given),
        blocks(ChannelBlocks(given.out_channels)),
        inside(InsideOutputs(given.out_width, given.in_width, given.kernel_width,
                             given.stride_width, given.dilation_width, given.pad_left)) {
    const size_t flops_per_pixel = 2 * given.kernel_height * given.kernel_width * kChannelBlock;
    split = SplitPixels(
        given, {.flops_per_pixel = flops_per_pixel, .tasks_per_part = given.batch * blocks});
    // A task of one block may be so small that claiming it takes long beside it.
    constexpr size_t kTaskFlops = 512 << 10;
    constexpr size_t kEnoughTasks = 16;
    const size_t flops = blocks * flops_per_pixel * given.out_height * given.out_width;
    groups = std::clamp<size_t>(std::max(flops / kTaskFlops, kEnoughTasks) / split.parts(), 1,
                                std::max<size_t>(1, blocks));
  }

  struct Task {
    size_t image;
    Range blocks;
    Range rows;
    Range columns;
  };
  size_t TaskCount() const { return shape.batch * split.parts() * groups; }
  // Consecutive tasks share the pixels, as those of dense convolutions do.
  Task Locate(size_t task) const {
    const size_t part = task / groups % split.parts();
    return {task / groups / split.parts(), PartOf(blocks, groups, task % groups),
            PartOf(shape.out_height, split.row_parts, part / split.column_parts),
            PartOf(shape.out_width, split.column_parts, part % split.column_parts)};
  }

  const Conv2dShape& shape;
  size_t blocks;
  Range inside;  // output columns whose taps all lie in the row
  PixelSplit split;
  size_t groups;  // of blocks
};

}  // namespace
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using ConvDepthwiseTask = void (*)(const ConvDepthwiseArgs&, size_t);

namespace HWY_NAMESPACE {
namespace {

// One output row of one vector of channels. Pointers are at that vector's first lane; pixels are
// kChannelBlock floats apart.
struct Row {
  const Conv2dShape& shape;
  const float* in;       // column 0 of the first tap row in use
  size_t taps;           // tap rows in use
  size_t tap_stride;     // floats from one to the next
  const float* weights;  // of the first tap row in use
  const float* bias;
  const float* mask;
  const float* addend;  // column 0, or null
  float* out;           // column 0
  ClampRange clamp;

  // Input of column tap 0 for output column x.
  const float* In(size_t x) const {
    return in + FirstTap(x, shape.stride_width, shape.pad_left) * ptrdiff_t{kChannelBlock};
  }
};

// Of `count` output columns, at most kPixels.
template <size_t kPixels>
HWY_INLINE void InitSums(const Row& row, size_t first, VBlock (&sums)[kPixels],
                         size_t count = kPixels) {
  const DBlock d;
  const VBlock bias = hn::LoadU(d, row.bias);
  HWY_UNROLL(8) for (size_t p = 0; p < kPixels; ++p) sums[p] = bias;
  if (!row.addend) return;
  const float* addend = row.addend + first * kChannelBlock;
  HWY_UNROLL(8)
  for (size_t p = 0; p < kPixels; ++p) {
    if (p < count) sums[p] = hn::Add(sums[p], hn::LoadU(d, addend + p * kChannelBlock));
  }
}

template <size_t kPixels>
HWY_INLINE void StoreSums(const Row& row, size_t first, const VBlock (&sums)[kPixels],
                          size_t count = kPixels) {
  const DBlock d;
  const VBlock low = hn::Set(d, row.clamp.low);
  const VBlock high = hn::Set(d, row.clamp.high);
  const VBlock mask = hn::LoadU(d, row.mask);
  float* out = row.out + first * kChannelBlock;
  HWY_UNROLL(8)
  for (size_t p = 0; p < kPixels; ++p) {
    const VBlock y = MinOrSecond(high, MaxOrSecond(low, sums[p]));
    if (p < count) hn::StoreU(hn::And(y, mask), d, out + p * kChannelBlock);
  }
}

// kPixels output columns whose taps all lie inside. Every input pixel is loaded once and used for
// all the sums that it belongs to.
template <size_t kTaps, size_t kStride, size_t kPixels>
void RunFixed(const Row& row, size_t first) {
  const DBlock d;
  VBlock sums[kPixels];
  InitSums(row, first, sums);
  const float* in = row.In(first);
  const float* weights = row.weights;
  for (size_t r = 0; r < row.taps; ++r) {
    VBlock w[kTaps];
    HWY_UNROLL(8)
    for (size_t s = 0; s < kTaps; ++s) w[s] = hn::LoadU(d, weights + s * kChannelBlock);
    HWY_UNROLL(32)
    for (size_t x = 0; x < (kPixels - 1) * kStride + kTaps; ++x) {
      const VBlock value = hn::LoadU(d, in + x * kChannelBlock);
      HWY_UNROLL(8)
      for (size_t p = 0; p < kPixels; ++p) {
        if (x < p * kStride || x >= p * kStride + kTaps) continue;
        sums[p] = FastMulAdd(value, w[x - p * kStride], sums[p]);
      }
    }
    in += row.tap_stride;
    weights += kTaps * kChannelBlock;
  }
  StoreSums(row, first, sums);
}

// kPixels output columns over tap columns [taps.first, taps.last), all inside; any stride and
// dilation.
template <size_t kPixels>
void RunAny(const Row& row, size_t first, const TapRange& taps) {
  const DBlock d;
  VBlock sums[kPixels];
  InitSums(row, first, sums);
  const float* in = row.In(first);
  const size_t stride = row.shape.stride_width * kChannelBlock;
  const size_t dilation = row.shape.dilation_width * kChannelBlock;
  for (size_t r = 0; r < row.taps; ++r) {
    const float* weights = row.weights + r * row.shape.kernel_width * kChannelBlock;
    for (size_t s = taps.first; s < taps.last; ++s) {
      const VBlock w = hn::LoadU(d, weights + s * kChannelBlock);
      const float* tap = in + static_cast<ptrdiff_t>(r * row.tap_stride + s * dilation);
      HWY_UNROLL(8)
      for (size_t p = 0; p < kPixels; ++p) {
        sums[p] = FastMulAdd(hn::LoadU(d, tap + p * stride), w, sums[p]);
      }
    }
  }
  StoreSums(row, first, sums);
}

constexpr size_t kBorderPixels = 4;

// `count` output columns, at most kBorderPixels, of which taps may lie outside.
template <size_t kTaps, size_t kStride>
HWY_NOINLINE void RunBorderTile(const Row& row, size_t first, size_t count) {
  const DBlock d;
  VBlock sums[kBorderPixels];
  InitSums(row, first, sums, count);
  const auto column = static_cast<size_t>(FirstTap(first, kStride, row.shape.pad_left));
  const float* in = row.In(first);
  const float* weights = row.weights;
  for (size_t r = 0; r < row.taps; ++r) {
    VBlock w[kTaps];
    HWY_UNROLL(8)
    for (size_t s = 0; s < kTaps; ++s) w[s] = hn::LoadU(d, weights + s * kChannelBlock);
    HWY_UNROLL(16)
    for (size_t x = 0; x < (kBorderPixels - 1) * kStride + kTaps; ++x) {
      if (column + x >= row.shape.in_width) continue;  // also left of the image
      const VBlock value = hn::LoadU(d, in + x * kChannelBlock);
      HWY_UNROLL(4)
      for (size_t p = 0; p < kBorderPixels; ++p) {
        if (x < p * kStride || x >= p * kStride + kTaps) continue;
        sums[p] = FastMulAdd(value, w[x - p * kStride], sums[p]);
      }
    }
    in += row.tap_stride;
    weights += kTaps * kChannelBlock;
  }
  StoreSums(row, first, sums, count);
}

// Output columns in tiles of 8, and at the borders and the end in tiles of up to 4.
template <size_t kTaps, size_t kStride>
void RunColumns(const Row& row, const Range& columns, const Range& inside) {
  for (size_t x = columns.first; x < columns.last;) {
    if (x >= inside.first && x + 8 <= inside.last) {
      RunFixed<kTaps, kStride, 8>(row, x);
      x += 8;
    } else {
      const size_t count = std::min(kBorderPixels, columns.last - x);
      RunBorderTile<kTaps, kStride>(row, x, count);
      x += count;
    }
  }
}

// For any stride and dilation.
void RunAnyColumns(const Row& row, const Range& columns, const Range& inside) {
  const Conv2dShape& s = row.shape;
  const auto run_border = [&](size_t first, size_t last) {
    for (; first < last; ++first) {
      RunAny<1>(row, first,
                ValidTaps(FirstTap(first, s.stride_width, s.pad_left), s.dilation_width,
                          s.kernel_width, s.in_width));
    }
  };
  run_border(columns.first, inside.first);
  size_t x = inside.first;
  const TapRange all = {0, s.kernel_width};
  for (; x + 8 <= inside.last; x += 8) RunAny<8>(row, x, all);
  for (; x < inside.last; ++x) RunAny<1>(row, x, all);
  run_border(inside.last, columns.last);
}

// Computes the columns of a row, of which those `inside` have all taps in the image.
using RunFunction = void (*)(const Row&, const Range& columns, const Range& inside);

RunFunction SelectRun(const Conv2dShape& shape) {
  if (shape.dilation_width != 1 || shape.stride_width > 2) return &RunAnyColumns;
  const bool dense = shape.stride_width == 1;
  switch (shape.kernel_width) {
    case 3:
      return dense ? &RunColumns<3, 1> : &RunColumns<3, 2>;
    case 5:
      return dense ? &RunColumns<5, 1> : &RunColumns<5, 2>;
    case 7:
      if (dense) return &RunColumns<7, 1>;
      // These are rare, and modules of WebAssembly are to be small.
      return HWY_ARCH_WASM ? &RunAnyColumns : &RunColumns<7, 2>;
    default:
      return &RunAnyColumns;
  }
}

void RunRows(const ConvDepthwiseArgs& args, const DepthwisePlan& plan, size_t image, size_t block,
             const Range& rows, const Range& columns) {
  const Conv2dShape& shape = args.shape;
  const TileLanes lanes =
      MakeTileLanes(args.epilogue.bias, shape.out_channels, block * kChannelBlock, 1);
  const size_t plane = image * ChannelBlocks(shape.out_channels) + block;
  const size_t in_row = shape.in_width * kChannelBlock;
  const size_t out_row = shape.out_width * kChannelBlock;
  const float* in = args.in + plane * shape.in_height * in_row;
  const float* weights =
      args.weights + block * shape.kernel_height * shape.kernel_width * kChannelBlock;
  const BlockActivation activate(args.epilogue.activation);
  const RunFunction run = SelectRun(shape);
  const size_t inside_first = std::clamp(plan.inside.first, columns.first, columns.last);
  const Range inside = {inside_first, std::clamp(plan.inside.last, inside_first, columns.last)};
  for (size_t y = rows.first; y < rows.last; ++y) {
    const ptrdiff_t top = FirstTap(y, shape.stride_height, shape.pad_top);
    const TapRange taps =
        ValidTaps(top, shape.dilation_height, shape.kernel_height, shape.in_height);
    const ptrdiff_t first_row = top + static_cast<ptrdiff_t>(taps.first * shape.dilation_height);
    const size_t out_offset = (plane * shape.out_height + y) * out_row;
    for (size_t lane = 0; lane < kChannelBlock; lane += kBlockLanes) {
      const Row row = {
          .shape = shape,
          .in =
              taps.first == taps.last ? in : in + first_row * static_cast<ptrdiff_t>(in_row) + lane,
          .taps = taps.last - taps.first,
          .tap_stride = shape.dilation_height * in_row,
          .weights = weights + taps.first * shape.kernel_width * kChannelBlock + lane,
          .bias = lanes.bias + lane,
          .mask = lanes.masks + lane,
          .addend = args.epilogue.residual ? args.epilogue.residual + out_offset + lane : nullptr,
          .out = args.out + out_offset + lane,
          .clamp = EpilogueClamp(args.epilogue)};
      run(row, columns, inside);
    }
    if (activate) {
      activate(lanes.masks, columns.size(), args.out + out_offset + columns.first * kChannelBlock);
    }
  }
}

void RunTask(const ConvDepthwiseArgs& args, size_t task) {
  const DepthwisePlan plan(args.shape);
  const DepthwisePlan::Task at = plan.Locate(task);
  for (size_t block = at.blocks.first; block < at.blocks.last; ++block) {
    RunRows(args, plan, at.image, block, at.rows, at.columns);
  }
}

}  // namespace

const ConvDepthwiseTask kConvDepthwiseTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
size_t ConvDepthwiseTaskCount(const Conv2dShape& shape) { return DepthwisePlan(shape).TaskCount(); }

void RunConvDepthwiseTask(const ConvDepthwiseArgs& args, size_t task) {
  TENON_SELECT_TABLE(ConvDepthwiseTask, kConvDepthwiseTask)(args, task);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
