// Samples between the elements of a tensor: the indices and weights of elements.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>

namespace tenon {

// The most spatial axes of samples: a cubic sample then uses 4^6 elements.
constexpr size_t kMaxSampledRank = 6;

// Along one axis, up to four elements. A negative index means an element of 0.
template <class T>
struct AxisTaps {
  size_t count = 0;
  std::array<int64_t, 4> indices{};
  std::array<T, 4> weights{};
};

// Between the two neighbours of `position`. Elements outside [0, dim) are 0; so is the result for
// NaN.
template <class T>
AxisTaps<T> LinearTaps(T position, int64_t dim) {
  AxisTaps<T> taps{2, {-1, -1}, {}};
  if (!(position > -1 && position < static_cast<T>(dim))) return taps;
  const T floor = std::floor(position);
  const auto low = static_cast<int64_t>(floor);
  taps.indices[0] = low;  // -1 before the first element
  taps.indices[1] = low + 1 < dim ? low + 1 : -1;
  taps.weights[0] = 1 - (position - floor);
  taps.weights[1] = position - floor;
  return taps;
}

// The combinations of the axes' taps in a tensor of these dimensions: tap t of them, the last axis
// fastest, is written to indices[t * stride] and weights[t * stride]. Returns their number. The
// tensor has at most 2^31 - 1 elements.
template <class T>
size_t CombineTaps(std::span<const AxisTaps<T>> axes, std::span<const int64_t> dims, size_t stride,
                   int32_t* indices, T* weights) {
  size_t size = 1;
  indices[0] = 0;
  weights[0] = 1;
  for (size_t axis = 0; axis < axes.size(); ++axis) {
    const AxisTaps<T>& taps = axes[axis];
    // From the back, so that no combination is overwritten before its last use.
    for (size_t t = size * taps.count; t-- > 0;) {
      const size_t before = t / taps.count, k = t % taps.count;
      const int64_t outer = indices[before * stride];
      const bool outside = outer < 0 || taps.indices[k] < 0;
      indices[t * stride] =
          outside ? -1 : static_cast<int32_t>(outer * dims[axis] + taps.indices[k]);
      weights[t * stride] = weights[before * stride] * taps.weights[k];
    }
    size *= taps.count;
  }
  return size;
}

}  // namespace tenon
