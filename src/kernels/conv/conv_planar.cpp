#include "kernels/conv/conv_planar.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/conv/conv_dims.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/conv_planar.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/fused-inl.h"
#include "kernels/gemm/gemm_tile-inl.h"

#ifndef TENON_KERNELS_CONV_PLANAR_PLAN_
#define TENON_KERNELS_CONV_PLANAR_PLAN_
namespace tenon::kernels {
namespace {

// Rows are padded to a multiple of this, since whole vectors are read.
constexpr size_t kColumnStep = 16;

// The division of a convolution into tasks: image, frame, group, part of the output channels, band
// of output rows, part of the columns.
struct PlanarPlan {
  explicit PlanarPlan(const ConvGeneralShape& shape)
      : frames(shape.dims[0]),
        height(shape.dims[1]),
        width(shape.dims[2]),
        group_out(shape.out_channels / shape.groups),
        planes(shape.in_channels / shape.groups * frames.kernel),
        depth(planes * height.kernel * width.kernel) {
    constexpr size_t kBandFloats = 64 << 10;  // 256 KiB, which leaves room in L2
    // A row of many planes is divided, too.
    constexpr size_t kMostColumns = 20 * 3 * kColumnStep, kLeastColumns = 4 * 3 * kColumnStep;
    const size_t fitting_columns = kBandFloats / std::max<size_t>(1, planes * width.stride);
    column_parts = CeilDiv(width.out, std::clamp(fitting_columns, kLeastColumns, kMostColumns));
    const size_t columns = CeilDiv(width.out, column_parts);
    phase = CeilDiv(columns, kColumnStep) * kColumnStep + LastTap(width) / width.stride;
    row = phase * width.stride;
    constexpr size_t kTaskProducts = 2 << 20;
    const size_t products = std::max<size_t>(1, depth * group_out * columns);  // of an output row
    const size_t fitting = kBandFloats / std::max<size_t>(1, planes * row);    // input rows
    const size_t fitting_rows =
        fitting > LastTap(height) ? (fitting - LastTap(height) - 1) / height.stride + 1 : 1;
    const size_t rows = std::min({height.out, fitting_rows, CeilDiv(kTaskProducts, products)});
    bands = CeilDiv(height.out, rows);
    band_rows = CeilDiv(height.out, bands);
    // Copying the rows costs as much as some channels.
    constexpr size_t kLeastChannels = 64;
    channel_parts = std::clamp<size_t>(products * band_rows / kTaskProducts, 1,
                                       CeilDiv(group_out, kLeastChannels));
  }

  // Distance from a window's first column, or row, to its last one.
  static size_t LastTap(const ConvDim& dim) { return (dim.kernel - 1) * dim.dilation; }
  size_t InRows(size_t rows) const { return (rows - 1) * height.stride + LastTap(height) + 1; }
  size_t BandFloats(size_t rows) const { return planes * InRows(rows) * row; }
  size_t tasks() const { return channel_parts * bands * column_parts; }  // of a group

  ConvDim frames, height, width;
  size_t group_out;
  size_t
      planes;  // that an output frame reads: those of the group's channels, for each tap of frames
  size_t depth;
  // The columns of a row that are equal modulo the stride are stored together: a tap then uses
  // neighbouring ones.
  size_t phase;  // floats of one such set
  size_t row;    // floats of all
  size_t column_parts, bands, band_rows, channel_parts;
};

// Copies the columns of a row from `first` on, which may be negative, phase by phase, with zeros
// where there is no input; all zeros where `from` is null.
void CopyRow(const PlanarPlan& plan, const float* from, ptrdiff_t first, float* to) {
  if (from == nullptr) {
    std::fill_n(to, plan.row, 0.0f);
    return;
  }
  const size_t stride = plan.width.stride;
  for (size_t p = 0; p < stride; ++p, to += plan.phase) {
    const ptrdiff_t shift = first + static_cast<ptrdiff_t>(p);
    const Range inside = StridedInside(plan.phase, stride, shift, plan.width.in);
    std::fill_n(to, inside.first, 0.0f);
    if (inside.size() > 0) {
      const float* source = from + (shift + static_cast<ptrdiff_t>(inside.first * stride));
      float* target = to + inside.first;
      if (stride == 1) {
        std::copy_n(source, inside.size(), target);
      } else {
        for (size_t i = 0; i < inside.size(); ++i) target[i] = source[i * stride];
      }
    }
    std::fill(to + inside.last, to + plan.phase, 0.0f);
  }
}

}  // namespace
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using ConvPlanarTask = void (*)(const ConvGeneralArgs&, size_t, void*);

namespace HWY_NAMESPACE {
namespace {

// 8 x 3 sums and 3 vectors of inputs fill 27 registers; 4 x 3 and 3 fill 15. WebAssembly has 8
// sums, as in gemm_tile-inl.h.
constexpr size_t kMostChannels = kGemmMr > 8 ? 8 : 4;
constexpr size_t kMostVectors = HWY_ARCH_WASM ? 2 : 3;

// The sums of some channels for neighbouring columns of a row.
struct PlanarTile {
  const float* in;         // at the first column
  const int32_t* offsets;  // of the taps
  const float* weights;    // of the first channel
  size_t depth;            // taps, and the distance between channels in `weights`
  float* out;
  size_t plane;           // distance between channels in `out`
  size_t columns;         // in all vectors together
  const float* bias;      // of the first channel, or null
  const float* residual;  // at `out`, or null
};

template <size_t kChannels, size_t kVectors>
void RunTile(const PlanarTile& tile) {
  const GemmTag d;
  using V = hn::Vec<GemmTag>;
  // Three channels share a pointer, as in gemm_tile-inl.h.
  constexpr size_t kGroups = (kChannels + 2) / 3;
  V sums[kChannels][kVectors];
#pragma GCC unroll 8
  for (size_t c = 0; c < kChannels; ++c) {
#pragma GCC unroll 3
    for (size_t v = 0; v < kVectors; ++v) sums[c][v] = hn::Zero(d);
  }
  const size_t stride = tile.depth;
  const float* HWY_RESTRICT weights[kGroups];
#pragma GCC unroll 3
  for (size_t g = 0; g < kGroups; ++g) weights[g] = tile.weights + 3 * g * stride;
  for (size_t tap = 0; tap < tile.depth; ++tap) {
    const float* HWY_RESTRICT in = tile.in + tile.offsets[tap];
    V x[kVectors];
#pragma GCC unroll 3
    for (size_t v = 0; v < kVectors; ++v) x[v] = hn::LoadU(d, in + v * kGemmLanes);
#pragma GCC unroll 8
    for (size_t c = 0; c < kChannels; ++c) {
      const V weight = hn::Set(d, weights[c / 3][(c % 3) * stride]);
#pragma GCC unroll 3
      for (size_t v = 0; v < kVectors; ++v) sums[c][v] = FastMulAdd(weight, x[v], sums[c][v]);
    }
#pragma GCC unroll 3
    for (size_t g = 0; g < kGroups; ++g) ++weights[g];
  }
#pragma GCC unroll 8
  for (size_t c = 0; c < kChannels; ++c) {
#pragma GCC unroll 3
    for (size_t v = 0; v < kVectors; ++v) {
      const size_t at = c * tile.plane + v * kGemmLanes;
      const size_t n = std::min(kGemmLanes, tile.columns - v * kGemmLanes);
      V sum = sums[c][v];
      if (tile.bias) sum = hn::Add(sum, hn::Set(d, tile.bias[c]));
      if (n < kGemmLanes) {
        if (tile.residual) sum = hn::Add(sum, LoadPartial(d, tile.residual + at, n));
        StorePartial(sum, d, tile.out + at, n);
      } else {
        if (tile.residual) sum = hn::Add(sum, hn::LoadU(d, tile.residual + at));
        hn::StoreU(sum, d, tile.out + at);
      }
    }
  }
}

template <size_t kChannels>
void RunVectors(const PlanarTile& tile) {
  if constexpr (kMostVectors == 3) {
    if (tile.columns > 2 * kGemmLanes) return RunTile<kChannels, 3>(tile);
  }
  if (tile.columns > kGemmLanes) return RunTile<kChannels, 2>(tile);
  RunTile<kChannels, 1>(tile);
}

// Computes at most `channels` channels and returns how many.
size_t RunChannels(const PlanarTile& tile, size_t channels) {
  if constexpr (kMostChannels == 8) {
    if (channels >= 8) {
      RunVectors<8>(tile);
      return 8;
    }
  }
  if (channels >= 4) {
    RunVectors<4>(tile);
    return 4;
  }
  if (channels >= 2) {
    RunVectors<2>(tile);
    return 2;
  }
  RunVectors<1>(tile);
  return 1;
}

// Computes one output row of `channels` channels.
void RunRow(PlanarTile tile, size_t channels, size_t columns, const Activation& activate) {
  size_t done = 0;
  while (done < channels) {
    PlanarTile part = tile;
    size_t count = 0;
    for (size_t x = 0; x < columns; x += kMostVectors * kGemmLanes) {
      part.in = tile.in + x;
      part.out = tile.out + x;
      part.residual = tile.residual ? tile.residual + x : nullptr;
      part.columns = std::min(kMostVectors * kGemmLanes, columns - x);
      count = RunChannels(part, channels - done);
      if (activate) activate.OverRows(part.out, tile.plane, count, part.columns);
    }
    done += count;
    tile.weights += count * tile.depth;
    tile.out += count * tile.plane;
    if (tile.bias) tile.bias += count;
    if (tile.residual) tile.residual += count * tile.plane;
  }
}

// The rows of the input, of all channels of the group, for output rows `rows` of a frame.
void CopyBand(const PlanarPlan& plan, const float* in, size_t frame, const Range& rows,
              size_t first_column, float* band) {
  const ConvDim &frames = plan.frames, &height = plan.height, &width = plan.width;
  const size_t in_rows = plan.InRows(rows.size());
  const ptrdiff_t first_row = FirstTap(rows.first, height.stride, height.pad_begin);
  const ptrdiff_t column = FirstTap(first_column, width.stride, width.pad_begin);
  const auto is_inside = [](ptrdiff_t at, const ConvDim& dim) {
    return at >= 0 && at < static_cast<ptrdiff_t>(dim.in);
  };
  const ptrdiff_t first_frame = FirstTap(frame, frames.stride, frames.pad_begin);
  for (size_t plane = 0; plane < plan.planes; ++plane) {
    const size_t channel = plane / frames.kernel, tap = plane % frames.kernel;
    const ptrdiff_t z = first_frame + static_cast<ptrdiff_t>(tap * frames.dilation);
    for (size_t r = 0; r < in_rows; ++r, band += plan.row) {
      const ptrdiff_t y = first_row + static_cast<ptrdiff_t>(r);
      const float* from = nullptr;
      if (is_inside(z, frames) && is_inside(y, height)) {
        const size_t at = channel * frames.in + static_cast<size_t>(z);
        from = in + (at * height.in + static_cast<size_t>(y)) * width.in;
      }
      CopyRow(plan, from, column, band);
    }
  }
}

void RunTask(const ConvGeneralArgs& args, size_t task, void* scratch) {
  const ConvGeneralShape& shape = args.shape;
  const PlanarPlan plan(shape);
  const Range columns = PartOf(plan.width.out, plan.column_parts, task % plan.column_parts);
  task /= plan.column_parts;
  const Range rows = PartOf(plan.height.out, plan.bands, task % plan.bands);
  task /= plan.bands;
  const Range channels = PartOf(plan.group_out, plan.channel_parts, task % plan.channel_parts);
  task /= plan.channel_parts;
  const size_t group = task % shape.groups;
  task /= shape.groups;
  const size_t frame = task % plan.frames.out;
  const size_t image = task / plan.frames.out;

  float* const band = static_cast<float*>(scratch);
  int32_t* const offsets = reinterpret_cast<int32_t*>(band + plan.BandFloats(plan.band_rows));
  const size_t first_in = image * shape.in_channels + group * (shape.in_channels / shape.groups);
  CopyBand(plan, args.in + first_in * InPixels(shape), frame, rows, columns.first, band);
  const size_t channel_floats = plan.InRows(rows.size()) * plan.row;
  int32_t* offset = offsets;
  for (size_t p = 0; p < plan.planes; ++p) {
    for (size_t y = 0; y < plan.height.kernel; ++y) {
      for (size_t x = 0; x < plan.width.kernel; ++x) {
        const size_t column = x * plan.width.dilation;
        *offset++ = static_cast<int32_t>(p * channel_floats + y * plan.height.dilation * plan.row +
                                         column % plan.width.stride * plan.phase +
                                         column / plan.width.stride);
      }
    }
  }

  const size_t channel = group * plan.group_out + channels.first;
  const size_t plane = OutPixels(shape);
  PlanarTile tile;
  tile.offsets = offsets;
  tile.depth = plan.depth;
  tile.plane = plane;
  tile.weights = args.weights + channel * plan.depth;
  tile.bias = args.epilogue.bias ? args.epilogue.bias + channel : nullptr;
  const Activation activate(args.epilogue.activation);
  for (size_t row = rows.first; row < rows.last; ++row) {
    const size_t at = (image * shape.out_channels + channel) * plane +
                      (frame * plan.height.out + row) * plan.width.out;
    tile.in = band + (row - rows.first) * plan.height.stride * plan.row;
    tile.out = args.out + at + columns.first;
    tile.residual = args.epilogue.residual ? args.epilogue.residual + at + columns.first : nullptr;
    RunRow(tile, channels.size(), columns.size(), activate);
  }
}

}  // namespace

const ConvPlanarTask kConvPlanarTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
bool ConvPlanarSupports(const ConvGeneralShape& shape) {
  if (shape.groups == 0) return false;
  // Below these no size of the plan overflows.
  constexpr size_t kMostSize = 1 << 20, kMostStride = 1 << 12, kMostTaps = 1 << 16;
  for (const ConvDim& dim : shape.dims) {
    if (dim.out == 0 || dim.in > kMostSize || dim.out > kMostSize || dim.pad_begin > kMostSize ||
        dim.stride > kMostStride || dim.kernel > kMostTaps || dim.dilation > kMostTaps ||
        dim.kernel * dim.dilation > kMostTaps) {
      return false;
    }
  }
  const size_t taps = KernelTaps(shape);
  const size_t group_in = shape.in_channels / shape.groups;
  if (taps <= 1 || taps > kMostTaps || group_in > kMostTaps || group_in * taps > kMostTaps ||
      group_in * taps == 0 || shape.out_channels == 0) {
    return false;
  }
  const PlanarPlan plan(shape);
  constexpr size_t kMostFloats = 192 << 10;  // 768 KiB: in L2
  const size_t filled = CeilDiv(plan.width.out, kColumnStep) * kColumnStep;
  return 4 * plan.width.out >= 3 * filled && plan.BandFloats(1) <= kMostFloats;
}

size_t ConvPlanarTaskCount(const ConvGeneralShape& shape) {
  return shape.batch * shape.dims[0].out * shape.groups * PlanarPlan(shape).tasks();
}

size_t ConvPlanarScratchSize(const ConvGeneralShape& shape) {
  const PlanarPlan plan(shape);
  return plan.BandFloats(plan.band_rows) * sizeof(float) + plan.depth * sizeof(int32_t);
}

void RunConvPlanarTask(const ConvGeneralArgs& args, size_t task, void* scratch) {
  TENON_SELECT_TABLE(ConvPlanarTask, kConvPlanarTask)(args, task, scratch);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
