#include "kernels/conv/pool_planar.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/conv/conv_shape.h"
#include "kernels/dispatch.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/conv/pool_planar.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/min_max-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_POOL_PLANAR_PLAN_
#define TENON_KERNELS_POOL_PLANAR_PLAN_
namespace tenon::kernels {
namespace {

size_t PlanesPerTask(const PoolPlanarArgs& args) {
  constexpr size_t kTaskTaps = 64 << 10;
  size_t taps = 1;
  for (const PoolDim& dim : args.dims) taps *= dim.out * dim.kernel;
  return std::max<size_t>(1, kTaskTaps / std::max<size_t>(1, taps));
}

TapRange TapsInside(const PoolDim& dim, size_t out) {
  return ValidTaps(FirstTap(out, dim.stride, dim.pad_begin), dim.dilation, dim.kernel, dim.in);
}

// The input coordinate of a tap that lies inside the input.
size_t InputOf(const PoolDim& dim, size_t out, size_t tap) {
  return out * dim.stride + tap * dim.dilation - dim.pad_begin;
}

// How many elements of one dimension of a window an average counts.
size_t CountedTaps(const PoolDim& dim, size_t out, bool including_pads) {
  const TapRange taps = including_pads
                            ? ValidTaps(static_cast<ptrdiff_t>(out * dim.stride), dim.dilation,
                                        dim.kernel, dim.pad_begin + dim.in + dim.pad_end)
                            : TapsInside(dim, out);
  return taps.last - taps.first;
}

// The outputs of a row for which tap `tap` lies inside the input.
Range FindOutputsOfTap(const PoolDim& dim, size_t tap) {
  const size_t shift = tap * dim.dilation;
  const size_t first = shift >= dim.pad_begin ? 0 : CeilDiv(dim.pad_begin - shift, dim.stride);
  const size_t end = dim.in + dim.pad_begin;  // taps stop before this padded coordinate
  const size_t last = end > shift ? CeilDiv(end - shift, dim.stride) : 0;
  return {std::min(first, dim.out), std::max(std::min(first, dim.out), std::min(last, dim.out))};
}

// The taps of a row. They are shared by all rows and computed once a task, as they need divisions.
struct RowTaps {
  explicit RowTaps(const PoolDim& dim) : width(dim) {
    for (size_t tap = 0; tap < std::min(dim.kernel, kMostKnown); ++tap) {
      known[tap] = FindOutputsOfTap(dim, tap);
    }
    const Range of_first = OutputsOfTap(0);
    const Range of_last = OutputsOfTap(dim.kernel - 1);
    whole.first = std::max(of_first.first, of_last.first);
    whole.last = std::max(whole.first, std::min(of_first.last, of_last.last));
  }
  // The outputs of a row for which tap `tap` lies inside the input.
  Range OutputsOfTap(size_t tap) const {
    return tap < kMostKnown ? known[tap] : FindOutputsOfTap(width, tap);
  }

  static constexpr size_t kMostKnown = 16;
  const PoolDim& width;
  Range whole = {};  // the outputs for which all taps are inside
  Range known[kMostKnown] = {};
};

}  // namespace
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
using PoolPlanarTask = void (*)(const PoolPlanarArgs&, size_t);

namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// The loops over a row of outputs are scalar, so that the compiler vectorizes them for each target;
// explicit vectors are for the elements of one output.
struct MaxOf {
  static constexpr float kInitial = -std::numeric_limits<float>::infinity();
  float operator()(float sum, float x) const { return x > sum ? x : sum; }
  V operator()(V sum, V x) const { return MaxOrSecond(x, sum); }
  float Total(V a, V b) const { return hn::GetLane(hn::MaxOfLanes(D(), hn::Max(a, b))); }
};
struct SumOf {
  static constexpr float kInitial = 0;
  float operator()(float sum, float x) const { return sum + x; }
  V operator()(V sum, V x) const { return hn::Add(sum, x); }
  float Total(V a, V b) const { return hn::GetLane(hn::SumOfLanes(D(), hn::Add(a, b))); }
};
struct SumOfAbs : SumOf {
  float operator()(float sum, float x) const { return sum + std::abs(x); }
  V operator()(V sum, V x) const { return hn::Add(sum, hn::Abs(x)); }
};
struct SumOfSquares : SumOf {
  float operator()(float sum, float x) const { return sum + x * x; }
  V operator()(V sum, V x) const { return hn::MulAdd(x, x, sum); }
};
struct SumOfPowers {
  static constexpr float kInitial = 0;
  float p;
  float operator()(float sum, float x) const { return sum + std::pow(std::abs(x), p); }
};

// Adds x[0, n) to two vectors.
template <class Reduce>
void AddRun(const float* x, size_t n, Reduce reduce, V& first, V& second) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  // In registers: the references may be to memory that x overlaps, for all that the compiler knows.
  V a = first, b = second;
  size_t i = 0;
  for (; i + 2 * lanes <= n; i += 2 * lanes) {
    a = reduce(a, hn::LoadU(d, x + i));
    b = reduce(b, hn::LoadU(d, x + i + lanes));
  }
  for (; i + lanes <= n; i += lanes) a = reduce(a, hn::LoadU(d, x + i));
  if (i < n) b = reduce(b, LoadPartial(d, x + i, n - i, Reduce::kInitial));
  first = a;
  second = b;
}

template <class Reduce>
void AddTap(const RowTaps& taps, size_t tap, const float* HWY_RESTRICT in, Reduce reduce,
            float* HWY_RESTRICT out) {
  const PoolDim& width = taps.width;
  const Range range = taps.OutputsOfTap(tap);
  if (range.size() == 0) return;
  const float* from = in + InputOf(width, range.first, tap);
  float* to = out + range.first;
  const size_t count = range.size();
  if (width.stride == 1) {
    for (size_t x = 0; x < count; ++x) to[x] = reduce(to[x], from[x]);
  } else {
    for (size_t x = 0; x < count; ++x) to[x] = reduce(to[x], from[x * width.stride]);
  }
}

// One output row at (z, y) of a plane.
template <class Reduce>
HWY_NOINLINE void ReduceRow(const PoolPlanarArgs& args, const RowTaps& taps, const float* plane,
                            size_t z, size_t y, Reduce reduce, float* out) {
  // Not a structured binding: Clang 14 cannot capture one.
  const PoolDim &depth = args.dims[0], &height = args.dims[1], &width = args.dims[2];
  const TapRange depths = TapsInside(depth, z);
  const TapRange heights = TapsInside(height, y);
  const auto for_each_row = [&](const auto& visit) HWY_ATTR {
    for (size_t d = depths.first; d < depths.last; ++d) {
      for (size_t h = heights.first; h < heights.last; ++h) {
        const size_t row = InputOf(depth, z, d) * height.in + InputOf(height, y, h);
        visit(plane + row * width.in);
      }
    }
  };
  if constexpr (!std::is_same_v<Reduce, SumOfPowers>) {
    if (width.out == 1 && width.dilation == 1) {
      const TapRange inside = TapsInside(width, 0);
      V first = hn::Set(D(), Reduce::kInitial), second = first;
      if (inside.last - inside.first == width.in && height.dilation == 1) {
        // The rows of a frame are one run.
        for (size_t d = depths.first; d < depths.last && heights.first < heights.last; ++d) {
          const size_t row = InputOf(depth, z, d) * height.in + InputOf(height, y, heights.first);
          AddRun(plane + row * width.in, (heights.last - heights.first) * width.in, reduce, first,
                 second);
        }
      } else {
        for_each_row([&](const float* row) HWY_ATTR {
          AddRun(row + InputOf(width, 0, inside.first), inside.last - inside.first, reduce, first,
                 second);
        });
      }
      *out = reduce.Total(first, second);
      return;
    }
  }
  std::fill_n(out, width.out, Reduce::kInitial);
  for_each_row([&](const float* row) HWY_ATTR {
    for (size_t w = 0; w < width.kernel; ++w) AddTap(taps, w, row, reduce, out);
  });
}

void AverageRow(const PoolPlanarArgs& args, const RowTaps& taps, size_t z, size_t y, float* out) {
  const bool pads = args.kind == PlanarPoolKind::kAverageIncludingPads;
  const size_t rows = CountedTaps(args.dims[0], z, pads) * CountedTaps(args.dims[1], y, pads);
  const auto divide = [&](size_t x) {
    out[x] /= static_cast<float>(rows * CountedTaps(args.dims[2], x, pads));
  };
  for (size_t x = 0; x < taps.whole.first; ++x) divide(x);
  const auto whole_count = static_cast<float>(rows * args.dims[2].kernel);
  for (size_t x = taps.whole.first; x < taps.whole.last; ++x) out[x] /= whole_count;
  for (size_t x = taps.whole.last; x < args.dims[2].out; ++x) divide(x);
}

void LpRow(const PoolPlanarArgs& args, const RowTaps& taps, const float* plane, size_t z, size_t y,
           float* out) {
  const size_t width = args.dims[2].out;
  if (args.p == 1) {
    ReduceRow(args, taps, plane, z, y, SumOfAbs{}, out);
  } else if (args.p == 2) {
    ReduceRow(args, taps, plane, z, y, SumOfSquares{}, out);
    for (size_t x = 0; x < width; ++x) out[x] = std::sqrt(out[x]);
  } else {
    const float p = static_cast<float>(args.p);
    ReduceRow(args, taps, plane, z, y, SumOfPowers{p}, out);
    for (size_t x = 0; x < width; ++x) out[x] = std::pow(out[x], 1 / p);
  }
}

// Position of the first maximum of the window at (z, y, x): its offset in the plane, or -1.
ptrdiff_t FindMaximum(const PoolPlanarArgs& args, const float* plane, size_t z, size_t y,
                      size_t x) {
  const auto& [depth, height, width] = args.dims;
  const TapRange depths = TapsInside(depth, z);
  const TapRange heights = TapsInside(height, y);
  const TapRange widths = TapsInside(width, x);
  ptrdiff_t best = -1;
  for (size_t d = depths.first; d < depths.last; ++d) {
    for (size_t h = heights.first; h < heights.last; ++h) {
      const size_t row = InputOf(depth, z, d) * height.in + InputOf(height, y, h);
      for (size_t w = widths.first; w < widths.last; ++w) {
        const size_t at = row * width.in + InputOf(width, x, w);
        if (best < 0 || plane[at] > plane[best]) best = static_cast<ptrdiff_t>(at);
      }
    }
  }
  return best;
}

// The index that the operator reports for an offset in a plane.
int64_t ReportedIndex(const PoolPlanarArgs& args, size_t plane, size_t offset) {
  const auto& [depth, height, width] = args.dims;
  const size_t plane_size = depth.in * height.in * width.in;
  if (args.column_major_indices) {
    const size_t x = offset % width.in;
    const size_t y = offset / width.in % height.in;
    const size_t z = offset / width.in / height.in;
    offset = (x * height.in + y) * depth.in + z;
  }
  return static_cast<int64_t>(plane * plane_size + offset);
}

// Outputs [first, last) of a row, one by one.
HWY_NOINLINE void MaxWithIndices(const PoolPlanarArgs& args, const float* in, size_t plane,
                                 size_t z, size_t y, const Range& outputs, float* out,
                                 int64_t* indices) {
  for (size_t x = outputs.first; x < outputs.last; ++x) {
    const ptrdiff_t best = FindMaximum(args, in, z, y, x);
    out[x] = best < 0 ? MaxOf::kInitial : in[best];
    indices[x] = best < 0 ? -1 : ReportedIndex(args, plane, static_cast<size_t>(best));
  }
}

// in[0], in[stride], ..., of which `count` lanes are used.
HWY_INLINE V LoadStrided(const float* in, size_t stride, size_t count) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  if (stride == 1) return LoadPartial(d, in, count, 0.0f);
  if (stride == 2 && lanes > 1) {
    const size_t last = 2 * count - 1;
    const V low = LoadPartial(d, in, std::min(last, lanes), 0.0f);
    const V high = last > lanes ? LoadPartial(d, in + lanes, last - lanes, 0.0f) : hn::Zero(d);
    return hn::ConcatEven(d, high, low);
  }
  float picked[hn::MaxLanes(d)] = {};
  for (size_t i = 0; i < count; ++i) picked[i] = in[i * stride];
  return hn::LoadU(d, picked);
}

// `count` outputs of a row from x on, a vector at most, whose taps are all inside the row.
void MaxVectorWithIndices(const PoolPlanarArgs& args, const float* in, size_t plane, size_t z,
                          size_t y, size_t x, size_t count, float* out, int64_t* indices) {
  // Not a structured binding: Clang 14 cannot capture one.
  const PoolDim &depth = args.dims[0], &height = args.dims[1], &width = args.dims[2];
  const D d;
  const hn::RebindToSigned<D> di;
  const TapRange depths = TapsInside(depth, z);
  const TapRange heights = TapsInside(height, y);
  const auto steps = hn::Mul(hn::Iota(di, 0), hn::Set(di, static_cast<int32_t>(width.stride)));
  V best = hn::Set(d, MaxOf::kInitial);
  auto offsets = hn::Set(di, -1);
  for (size_t k = depths.first; k < depths.last; ++k) {
    for (size_t h = heights.first; h < heights.last; ++h) {
      const size_t row = InputOf(depth, z, k) * height.in + InputOf(height, y, h);
      for (size_t w = 0; w < width.kernel; ++w) {
        const size_t first = row * width.in + InputOf(width, x, w);
        const V value = LoadStrided(in + first, width.stride, count);
        const auto is_more =
            hn::Or(hn::Gt(value, best), hn::RebindMask(d, hn::Lt(offsets, hn::Zero(di))));
        best = hn::IfThenElse(is_more, value, best);
        offsets = hn::IfThenElse(hn::RebindMask(di, is_more),
                                 hn::Add(steps, hn::Set(di, static_cast<int32_t>(first))), offsets);
      }
    }
  }
  StorePartial(best, d, out, count);
  int32_t found[hn::MaxLanes(di)];
  hn::StoreU(offsets, di, found);
  const int64_t begin = ReportedIndex(args, plane, 0);
  for (size_t i = 0; i < count; ++i) indices[i] = found[i] < 0 ? -1 : begin + found[i];
  for (size_t i = 0; args.column_major_indices && i < count; ++i) {
    if (found[i] >= 0) indices[i] = ReportedIndex(args, plane, static_cast<size_t>(found[i]));
  }
}

void MaxRowWithIndices(const PoolPlanarArgs& args, const RowTaps& taps, const float* in,
                       size_t plane, size_t z, size_t y, float* out, int64_t* indices) {
  const auto& [depth, height, width] = args.dims;
  const auto one_by_one = [&](size_t first, size_t last) {
    if (first < last) MaxWithIndices(args, in, plane, z, y, {first, last}, out, indices);
  };
  // Vectors have offsets of 32 bits.
  if (depth.in * height.in * width.in > std::numeric_limits<int32_t>::max()) {
    return one_by_one(0, args.dims[2].out);
  }
  one_by_one(0, taps.whole.first);
  for (size_t x = taps.whole.first; x < taps.whole.last; x += hn::Lanes(D())) {
    const size_t count = std::min(taps.whole.last - x, hn::Lanes(D()));
    MaxVectorWithIndices(args, in, plane, z, y, x, count, out + x, indices + x);
  }
  one_by_one(taps.whole.last, args.dims[2].out);
}

void RunRow(const PoolPlanarArgs& args, const RowTaps& taps, size_t plane, size_t z, size_t y) {
  const auto& [depth, height, width] = args.dims;
  const float* in = args.in + plane * depth.in * height.in * width.in;
  const size_t offset = ((plane * depth.out + z) * height.out + y) * width.out;
  float* out = args.out + offset;
  switch (args.kind) {
    case PlanarPoolKind::kMax:
      if (args.indices) {
        return MaxRowWithIndices(args, taps, in, plane, z, y, out, args.indices + offset);
      }
      return ReduceRow(args, taps, in, z, y, MaxOf{}, out);
    case PlanarPoolKind::kAverage:
    case PlanarPoolKind::kAverageIncludingPads:
      ReduceRow(args, taps, in, z, y, SumOf{}, out);
      return AverageRow(args, taps, z, y, out);
    case PlanarPoolKind::kLp:
      return LpRow(args, taps, in, z, y, out);
  }
}

// The most columns of a padded row, and of outputs.
constexpr size_t kMostPadded = 4096;

// Columns that the windows of a row span, from its first pad on.
size_t ReadColumns(const PoolDim& width) {
  return (width.out - 1) * width.stride + (width.kernel - 1) * width.dilation + 1;
}

bool CanPadRows(const PoolDim& width) {
  const bool is_small = std::max({width.in, width.out, width.kernel, width.stride, width.dilation,
                                  width.pad_begin}) <= kMostPadded;
  return is_small && width.out > 1 && width.pad_begin + width.in <= kMostPadded &&
         ReadColumns(width) <= kMostPadded;
}

// Rows of outputs by vectors: first the rows of a window, into one that has the reduction's initial
// value in the place of pads; then, along that one, the columns. Both for many planes at a time, as
// vectors that are read across those just written wait for them.
template <class Reduce>
class PaddedPool {
 public:
  PaddedPool(const PoolPlanarArgs& args, const Range& planes) : args_(args), planes_(planes) {
    const size_t used = std::min(planes.size(), kMostPadded / columns_) * columns_;
    std::fill_n(rows_, used + 3 * hn::Lanes(D()), Reduce::kInitial);
    for (size_t x = 0; kIsAverage && x < width_.out; ++x) {
      counts_[x] = static_cast<float>(CountedTaps(width_, x, pads_));
    }
  }

  HWY_NOINLINE void Run() {
    const size_t step = kMostPadded / columns_;
    for (size_t z = 0; z < depth_.out; ++z) {
      for (size_t y = 0; y < height_.out; ++y) {
        for (size_t first = planes_.first; first < planes_.last; first += step) {
          RunRow(z, y, {first, std::min(planes_.last, first + step)});
        }
      }
    }
  }

 private:
  void RunRow(size_t z, size_t y, const Range& planes) {
    const TapRange depths = TapsInside(depth_, z), heights = TapsInside(height_, y);
    const Window window = {
        .frames = depths.last - depths.first,
        .rows = heights.last - heights.first,
        .counted = CountedTaps(depth_, z, pads_) * CountedTaps(height_, y, pads_),
        .room = (height_.out - y) * width_.out,
    };
    const bool is_empty = window.frames == 0 || window.rows == 0;
    const size_t first = is_empty ? 0
                                  : InputOf(depth_, z, depths.first) * height_.in +
                                        InputOf(height_, y, heights.first);
    const float* const in = args_.in + first * width_.in;
    float* const out = args_.out + (z * height_.out + y) * width_.out;
    const auto reduce_rows = window.rows == 3   ? &PaddedPool::ReduceRows<3>
                             : window.rows == 2 ? &PaddedPool::ReduceRows<2>
                                                : &PaddedPool::ReduceRows<0>;
    const bool is_three = width_.kernel == 3;
    const auto reduce_columns =
        width_.stride == 1
            ? is_three ? &PaddedPool::ReduceColumns<1, 3> : &PaddedPool::ReduceColumns<1, 0>
        : width_.stride == 2
            ? is_three ? &PaddedPool::ReduceColumns<2, 3> : &PaddedPool::ReduceColumns<2, 0>
            : &PaddedPool::ReduceColumns<0, 0>;
    for (size_t plane = planes.first; plane < planes.last; ++plane) {
      float* const row = rows_ + (plane - planes.first) * columns_;
      (this->*reduce_rows)(in + plane * frame_ * depth_.in, window, row + width_.pad_begin);
    }
    for (size_t plane = planes.first; plane < planes.last; ++plane) {
      const float* const row = rows_ + (plane - planes.first) * columns_;
      (this->*reduce_columns)(row, window, out + plane * depth_.out * height_.out * width_.out);
    }
  }

  struct Window {
    size_t frames, rows;  // of the input: so many rows in so many frames
    size_t counted;       // rows that an average counts
    size_t room;          // outputs of this frame from this row on, of which the later ones follow
  };

  // visit(x) for vectors of columns, of which there is one at least. The last two may overlap.
  template <class Visit>
  static HWY_INLINE void ForEachVector(size_t columns, Visit visit) {
    const size_t lanes = hn::Lanes(D());
    size_t x = 0;
    for (; x + lanes <= columns; x += lanes) visit(x);
    if (x < columns) visit(columns - lanes);
  }

  // kRows: of each frame; 0: any number.
  template <size_t kRows>
  void ReduceRows(const float* in, const Window& window, float* out) const {
    const D d;
    const size_t rows = kRows == 0 ? window.rows : kRows;
    const size_t row_step = height_.dilation * width_.in, frame_step = depth_.dilation * frame_;
    const auto reduced = [&](size_t x, auto load) HWY_ATTR {
      V sum = hn::Set(d, Reduce::kInitial);
      for (size_t k = 0; k < window.frames; ++k) {
        const float* from = in + k * frame_step + x;
#pragma GCC unroll 3
        for (size_t h = 0; h < rows; ++h, from += row_step) sum = reduce_(sum, load(from));
      }
      return sum;
    };
    if (width_.in < hn::Lanes(d)) {
      const V sum = reduced(0, [&](const float* from) HWY_ATTR {
        return LoadPartial(d, from, width_.in, Reduce::kInitial);
      });
      return hn::StoreU(sum, d, out);
    }
    ForEachVector(width_.in, [&](size_t x) HWY_ATTR {
      const V sum = reduced(x, [&](const float* from) HWY_ATTR { return hn::LoadU(d, from); });
      hn::StoreU(sum, d, out + x);
    });
  }

  // Strides and kernels of 0 are any.
  template <size_t kStride, size_t kKernel>
  void ReduceColumns(const float* row, const Window& window, float* out) const {
    const D d;
    const size_t lanes = hn::Lanes(d);
    const size_t stride = kStride == 0 ? width_.stride : kStride;
    const size_t kernel = kKernel == 0 ? width_.kernel : kKernel;
    const V row_count = hn::Set(d, static_cast<float>(window.counted));
    const auto reduced = [&](size_t x, size_t count) HWY_ATTR {
      V sum = hn::Set(d, Reduce::kInitial);
      const float* from = row + x * stride;
#pragma GCC unroll 3
      for (size_t w = 0; w < kernel; ++w, from += width_.dilation) {
        sum = reduce_(sum, Columns<kStride>(from, count));
      }
      if constexpr (kIsAverage) sum = hn::Div(sum, hn::Mul(row_count, hn::LoadU(d, counts_ + x)));
      return sum;
    };
    if (width_.out < lanes) {
      const V sum = reduced(0, width_.out);
      return StoreUpTo(sum, d, out, window.room >= lanes ? lanes : width_.out);
    }
    ForEachVector(width_.out,
                  [&](size_t x) HWY_ATTR { hn::StoreU(reduced(x, lanes), d, out + x); });
  }

  // Of a vector's outputs, of which `count` are used; whole vectors may be read.
  template <size_t kStride>
  HWY_INLINE V Columns(const float* from, size_t count) const {
    const D d;
    const size_t lanes = hn::Lanes(d);
    if (kStride == 1) return hn::LoadU(d, from);
    if (kStride != 2 || lanes == 1) return LoadStrided(from, width_.stride, count);
    return hn::ConcatEven(d, hn::LoadU(d, from + lanes), hn::LoadU(d, from));
  }

  static constexpr bool kIsAverage = !std::is_same_v<Reduce, MaxOf>;
  static constexpr size_t kMostLanes = hn::MaxLanes(D());

  const PoolPlanarArgs& args_;
  const Range planes_;
  const PoolDim depth_ = args_.dims[0], height_ = args_.dims[1], width_ = args_.dims[2];
  const size_t frame_ = height_.in * width_.in;
  const bool pads_ = args_.kind == PlanarPoolKind::kAverageIncludingPads;
  const Reduce reduce_ = {};
  // Of a row with its pads. What a whole vector writes after it are initial values, too.
  const size_t columns_ = std::max(width_.pad_begin + width_.in, ReadColumns(width_));
  float rows_[kMostPadded + 3 * kMostLanes];
  float counts_[kMostPadded + kMostLanes];  // elements of a row of each window, if it averages
};

void RunTask(const PoolPlanarArgs& args, size_t task) {
  const size_t planes = PlanesPerTask(args);
  const size_t last = std::min(args.planes, (task + 1) * planes);
  if (args.kind != PlanarPoolKind::kLp && !args.indices && CanPadRows(args.dims[2])) {
    const Range range = {task * planes, last};
    if (args.kind == PlanarPoolKind::kMax) return PaddedPool<MaxOf>(args, range).Run();
    return PaddedPool<SumOf>(args, range).Run();
  }
  const RowTaps taps(args.dims[2]);
  for (size_t plane = task * planes; plane < last; ++plane) {
    for (size_t z = 0; z < args.dims[0].out; ++z) {
      for (size_t y = 0; y < args.dims[1].out; ++y) RunRow(args, taps, plane, z, y);
    }
  }
}

}  // namespace

const PoolPlanarTask kPoolPlanarTask = &RunTask;

}  // namespace HWY_NAMESPACE

#if HWY_ONCE
size_t PoolPlanarTaskCount(const PoolPlanarArgs& args) {
  return CeilDiv(args.planes, PlanesPerTask(args));
}

void RunPoolPlanarTask(const PoolPlanarArgs& args, size_t task) {
  TENON_SELECT_TABLE(PoolPlanarTask, kPoolPlanarTask)(args, task);
}
#endif

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
