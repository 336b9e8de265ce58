// Where GridSample takes its samples, and the weights of the elements around.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <tuple>

#include "kernels/grid_taps.h"
#include "ops/framework/attributes.h"
#include "ops/framework/element.h"
#include "ops/framework/sample_taps.h"

namespace tenon {

// GridSample-20; GridSample-16 calls its modes bilinear and bicubic.
struct GridSampleAttrs {
  bool align_corners = false;
  std::string mode = "linear";
  std::string padding_mode = "zeros";
  static constexpr auto Fields() {
    return std::tuple(Field("align_corners", &GridSampleAttrs::align_corners),
                      Field("mode", &GridSampleAttrs::mode),
                      Field("padding_mode", &GridSampleAttrs::padding_mode));
  }
};

enum class SampleMode : uint8_t { kNearest, kLinear, kCubic };
using Padding = kernels::GridPadding;

struct SampleOptions {
  SampleMode mode;
  Padding padding;
  bool align_corners;

  // Along an axis, the elements of a sample.
  size_t taps() const {
    return mode == SampleMode::kNearest ? 1 : mode == SampleMode::kLinear ? 2 : 4;
  }
};

inline Result<SampleOptions> OptionsOf(const GridSampleAttrs& attrs) {
  SampleOptions options{SampleMode::kNearest, Padding::kZeros, attrs.align_corners};
  if (attrs.mode == "linear" || attrs.mode == "bilinear") {
    options.mode = SampleMode::kLinear;
  } else if (attrs.mode == "cubic" || attrs.mode == "bicubic") {
    options.mode = SampleMode::kCubic;
  } else if (attrs.mode != "nearest") {
    return InvalidArgument("attribute 'mode': expected nearest, linear or cubic, got '{}'",
                           attrs.mode);
  }
  if (attrs.padding_mode == "border") {
    options.padding = Padding::kBorder;
  } else if (attrs.padding_mode == "reflection") {
    options.padding = Padding::kReflection;
  } else if (attrs.padding_mode != "zeros") {
    return InvalidArgument(
        "attribute 'padding_mode': expected zeros, border or reflection, got '{}'",
        attrs.padding_mode);
  }
  return options;
}

// One spatial axis. T, float or double, is what positions and samples are computed in.
template <class T>
class SampledAxis {
 public:
  SampledAxis() = default;
  SampledAxis(int64_t dim, const SampleOptions& options)
      : dim_(dim),
        options_(options),
        least_(options.align_corners ? T(0) : T(-0.5)),
        most_(static_cast<T>(dim) - (options.align_corners ? T(1) : T(0.5))) {}

  // `normalized` is -1 and 1 at the ends of the axis.
  AxisTaps<T> Taps(T normalized) const {
    T x = Position(normalized);
    if (options_.mode == SampleMode::kNearest) x = std::nearbyint(x);
    // At a border, the taps of cubic interpolation are moved inside one by one, as in PyTorch.
    const bool moves_taps =
        options_.mode == SampleMode::kCubic && options_.padding == Padding::kBorder;
    if (!(x >= least_ && x <= most_) && !moves_taps) x = Pad(x);
    if (options_.mode == SampleMode::kNearest) return {1, {Element(x)}, {1}};
    const T floor = std::floor(x);
    const T ratio = x - floor;
    if (options_.mode == SampleMode::kLinear) {
      return {2, {Element(floor), Element(floor + 1)}, {1 - ratio, ratio}};
    }
    return {4,
            {Element(floor - 1), Element(floor), Element(floor + 1), Element(floor + 2)},
            {Far(1 + ratio), Near(ratio), Near(1 - ratio), Far(2 - ratio)}};
  }

  // The derivatives of the weights of these taps. Where a position is moved to a border, they are
  // 0, as in PyTorch.
  std::array<T, 4> Slopes(T normalized) const {
    if (options_.mode == SampleMode::kNearest) return {};
    T x = Position(normalized);
    T slope = static_cast<T>(options_.align_corners ? dim_ - 1 : dim_) / 2;
    const bool is_cubic = options_.mode == SampleMode::kCubic;
    if (options_.padding == Padding::kReflection && !(x >= least_ && x <= most_)) {
      const T range = most_ - least_;
      if (!(range > 0) || !std::isfinite(x)) return {};
      const bool is_back = std::fmod(std::abs(x - least_), 2 * range) >= range;
      if (is_back != (x < least_)) slope = -slope;
      x = Reflect(x);
    }
    if (options_.padding != Padding::kZeros && !is_cubic &&
        !(x > 0 && x < static_cast<T>(dim_ - 1))) {
      return {};
    }
    if (!is_cubic) return {-slope, slope};
    const T ratio = x - std::floor(x);
    return {slope * FarSlope(1 + ratio), slope * NearSlope(ratio), -slope * NearSlope(1 - ratio),
            -slope * FarSlope(2 - ratio)};
  }

  T Position(T normalized) const {
    const T dim = static_cast<T>(dim_);
    if (options_.align_corners) return (normalized + 1) / 2 * (dim - 1);
    return ((normalized + 1) * dim - 1) / 2;
  }

 private:
  static constexpr T kA = T(-0.75);  // the coefficient of cubic interpolation
  static T Near(T x) { return ((kA + 2) * x - (kA + 3)) * x * x + 1; }
  static T Far(T x) { return ((kA * x - 5 * kA) * x + 8 * kA) * x - 4 * kA; }
  static T NearSlope(T x) { return (3 * (kA + 2) * x - 2 * (kA + 3)) * x; }
  static T FarSlope(T x) { return (3 * kA * x - 10 * kA) * x + 8 * kA; }

  // A position outside the axis, moved inside by the padding mode.
  T Pad(T x) const {
    if (options_.padding == Padding::kBorder) {
      return std::isnan(x) ? T(0) : std::clamp<T>(x, 0, static_cast<T>(dim_ - 1));
    }
    return options_.padding == Padding::kReflection ? Reflect(x) : x;
  }

  T Reflect(T x) const {
    const T range = most_ - least_;
    if (!(range > 0) || !std::isfinite(x)) return least_;
    const T beyond = std::fmod(x < least_ ? least_ - x : x - least_, 2 * range);
    return beyond < range ? least_ + beyond : most_ - (beyond - range);
  }

  // The element at a whole position, or -1 for a padding of 0.
  int64_t Element(T x) const {
    if (x >= 0 && x < static_cast<T>(dim_)) return static_cast<int64_t>(x);
    if (options_.padding == Padding::kZeros) return -1;
    const T inside = options_.padding == Padding::kBorder ? x : std::trunc(Reflect(x));
    if (!(inside > 0)) return 0;
    return inside < static_cast<T>(dim_) ? static_cast<int64_t>(inside) : dim_ - 1;
  }

  int64_t dim_ = 1;
  SampleOptions options_{};
  T least_ = 0, most_ = 0;
};

// Positions as T, whatever the type of the grid.
template <class T>
class Grid {
 public:
  Grid(const Tensor& grid, const Tensor& x, const SampleOptions& options)
      : grid_(grid), rank_(x.rank() - 2), dims_(x.shape().dims().subspan(2)), options_(options) {
    for (size_t i = 0; i < rank_; ++i) axes_[i] = SampledAxis<T>(dims_[i], options);
  }

  const SampledAxis<T>& axis(size_t i) const { return axes_[i]; }
  // Whether vectors of positions are served, and what kernels know of an axis then.
  bool IsServed() const {
    return std::is_same_v<T, float> && grid_.type() == DataType::kFloat && Axis(0).IsServed();
  }
  kernels::GridAxis Axis(size_t i) const {
    return {dims_[i], options_.taps(), options_.padding, options_.align_corners};
  }
  // Copies the coordinates of positions [begin, begin + count) along an axis.
  void CopyPositions(size_t axis, size_t begin, size_t count, T* to) const {
    // The last axis comes first.
    const T* from = grid_.data<T>() + begin * rank_ + rank_ - 1 - axis;
    if (rank_ == 2) {  // for vectors
      for (size_t i = 0; i < count; ++i) to[i] = from[2 * i];
    } else {
      for (size_t i = 0; i < count; ++i) to[i] = from[i * rank_];
    }
  }

  // The taps of positions [begin, begin + count), counted through all images. `work` has room for
  // 2 numbers for each tap of an axis and position.
  void FindTaps(size_t begin, size_t count, int32_t* indices, T* weights, T* work) const {
    if constexpr (std::is_same_v<T, float>) {
      if (IsServed()) return FindVectors(begin, count, indices, weights, work);
    }
    // Some at a time, so that only their conversion is compiled for each type of grid.
    constexpr size_t kAtOnce = 64;
    std::array<T, kAtOnce * kMaxSampledRank> positions;
    for (size_t i = 0; i < count; ++i) {
      if (i % kAtOnce == 0) {
        Convert((begin + i) * rank_, std::min(kAtOnce, count - i) * rank_, positions.data());
      }
      const T* position = positions.data() + i % kAtOnce * rank_;
      std::array<AxisTaps<T>, kMaxSampledRank> taps;
      for (size_t axis = 0; axis < rank_; ++axis) {
        taps[axis] = axes_[axis].Taps(position[rank_ - 1 - axis]);
      }
      CombineTaps<T>({taps.data(), rank_}, dims_, count, indices + i, weights + i);
    }
  }

 private:
  // Elements [begin, begin + count) of the grid as T.
  void Convert(size_t begin, size_t count, T* to) const {
    VisitNumber(grid_.type(), [&]<class G>(G) {
      const G* from = grid_.data<G>() + begin;
      for (size_t i = 0; i < count; ++i) to[i] = static_cast<T>(Widen(from[i]));
    });
  }

  void FindVectors(size_t begin, size_t count, int32_t* indices, float* weights,
                   float* work) const {
    const size_t per_axis = options_.taps();
    if (rank_ == 2 && per_axis <= 2 && options_.padding != Padding::kReflection) {
      const float* positions = grid_.data<float>() + 2 * begin;
      return kernels::FindPlaneTaps(Axis(0), Axis(1), count, positions, indices, weights);
    }
    size_t size = per_axis * count;
    CopyPositions(0, begin, count, weights);
    kernels::FindAxisTaps(Axis(0), count, indices, weights, nullptr);
    auto* const own_indices = reinterpret_cast<int32_t*>(work + size);
    for (size_t axis = 1; axis < rank_; ++axis) {
      CopyPositions(axis, begin, count, work);
      kernels::FindAxisTaps(Axis(axis), count, own_indices, work, nullptr);
      // From the back, so that no combination is overwritten before its last use.
      for (size_t before = size; before > 0;) {
        before -= count;
        for (size_t k = per_axis; k-- > 0;) {
          const size_t own = k * count, at = before * per_axis + own;
          kernels::JoinTaps(dims_[axis], indices + before, weights + before, own_indices + own,
                            work + own, indices + at, weights + at, count);
        }
      }
      size *= per_axis;
    }
  }

  const Tensor& grid_;
  size_t rank_;
  std::span<const int64_t> dims_;
  SampleOptions options_;
  std::array<SampledAxis<T>, kMaxSampledRank> axes_;
};

}  // namespace tenon
