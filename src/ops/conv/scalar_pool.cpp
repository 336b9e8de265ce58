#include "ops/conv/scalar_pool.h"

#include <cmath>
#include <limits>
#include <optional>

namespace tenon {
namespace {

using kernels::PlanarPoolKind;
using kernels::PoolDim;
using kernels::PoolPlanarArgs;

// The input coordinate of a tap; outside the input if it is in the pads.
size_t InputOf(const PoolDim& dim, size_t out, size_t tap) {
  return out * dim.stride + tap * dim.dilation - dim.pad_begin;
}

// Taps of one dimension of a window that lie inside the input and its pads.
size_t PaddedTaps(const PoolDim& dim, size_t out) {
  size_t count = 0;
  for (size_t tap = 0; tap < dim.kernel; ++tap) {
    count += out * dim.stride + tap * dim.dilation < dim.pad_begin + dim.in + dim.pad_end ? 1 : 0;
  }
  return count;
}

// Calls visit(offset in the plane) for the elements of the window at (z, y, x), in order.
template <class Visit>
void ForEachTap(const PoolPlanarArgs& args, size_t z, size_t y, size_t x, Visit&& visit) {
  const auto& [depth, height, width] = args.dims;
  for (size_t d = 0; d < depth.kernel; ++d) {
    const size_t in_z = InputOf(depth, z, d);
    for (size_t h = 0; h < height.kernel && in_z < depth.in; ++h) {
      const size_t in_y = InputOf(height, y, h);
      for (size_t w = 0; w < width.kernel && in_y < height.in; ++w) {
        const size_t in_x = InputOf(width, x, w);
        if (in_x < width.in) visit((in_z * height.in + in_y) * width.in + in_x);
      }
    }
  }
}

int64_t ReportedIndex(const PoolPlanarArgs& args, size_t plane, size_t offset) {
  const auto& [depth, height, width] = args.dims;
  if (args.column_major_indices) {
    const size_t x = offset % width.in, row = offset / width.in;
    offset = (x * height.in + row % height.in) * depth.in + row / height.in;
  }
  return static_cast<int64_t>(plane * depth.in * height.in * width.in + offset);
}

template <class T>
T Maximum(const PoolPlanarArgs& args, const T* in, size_t plane, size_t z, size_t y, size_t x,
          int64_t* index) {
  ptrdiff_t best = -1;
  ForEachTap(args, z, y, x, [&](size_t at) {
    if (best < 0 || in[at] > in[best]) best = static_cast<ptrdiff_t>(at);
  });
  if (index) *index = best < 0 ? -1 : ReportedIndex(args, plane, static_cast<size_t>(best));
  if (best >= 0) return in[best];
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}

double Reduced(const PoolPlanarArgs& args, const double* in, size_t z, size_t y, size_t x) {
  double sum = 0;
  size_t count = 0;
  ForEachTap(args, z, y, x, [&](size_t at) {
    sum += args.kind == PlanarPoolKind::kLp ? std::pow(std::abs(in[at]), args.p) : in[at];
    ++count;
  });
  if (args.kind == PlanarPoolKind::kLp) return std::pow(sum, 1 / args.p);
  if (args.kind == PlanarPoolKind::kAverageIncludingPads) {
    count = PaddedTaps(args.dims[0], z) * PaddedTaps(args.dims[1], y) * PaddedTaps(args.dims[2], x);
  }
  return sum / static_cast<double>(count);
}

// The position of an element of a plane, counting the first axis fastest.
size_t ColumnMajor(const GeneralWindow& window, size_t offset) {
  std::array<size_t, kMostWindowRank> at;
  for (size_t i = window.rank; i-- > 0; offset /= window.dims[i].in) {
    at[i] = offset % window.dims[i].in;
  }
  size_t result = 0;
  for (size_t i = window.rank; i-- > 0;) result = result * window.dims[i].in + at[i];
  return result;
}

template <class T>
T GeneralMaximum(const GeneralWindow& window, const T* in, size_t out,
                 std::optional<size_t>* where) {
  window.ForEachTap(out, [&](const GeneralWindow::Tap& tap) {
    if (!tap.is_inside) return;
    if (!*where || in[tap.offset] > in[**where]) *where = tap.offset;
  });
  if (*where) return in[**where];
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::lowest();
}

template <class T>
double GeneralReduced(const GeneralWindow& window, const PoolPlanarArgs& args, const T* in,
                      size_t out) {
  double sum = 0;
  size_t inside = 0, counted = 0;
  window.ForEachTap(out, [&](const GeneralWindow::Tap& tap) {
    counted += tap.is_counted ? 1 : 0;
    if (!tap.is_inside) return;
    ++inside;
    const auto x = static_cast<double>(in[tap.offset]);
    sum += args.kind == PlanarPoolKind::kLp ? std::pow(std::abs(x), args.p) : x;
  });
  if (args.kind == PlanarPoolKind::kLp) return std::pow(sum, 1 / args.p);
  const bool counts_pads = args.kind == PlanarPoolKind::kAverageIncludingPads;
  return sum / static_cast<double>(counts_pads ? counted : inside);
}

}  // namespace

template <class T>
void ScalarPoolPlane(const PoolPlanarArgs& args, const T* in, T* out, size_t plane) {
  const auto& [depth, height, width] = args.dims;
  in += plane * depth.in * height.in * width.in;
  const size_t size = depth.out * height.out * width.out;
  for (size_t i = 0; i < size; ++i) {
    const size_t at = plane * size + i;
    const size_t x = i % width.out, y = i / width.out % height.out, z = i / width.out / height.out;
    if (args.kind == PlanarPoolKind::kMax) {
      out[at] = Maximum(args, in, plane, z, y, x, args.indices ? args.indices + at : nullptr);
    } else if constexpr (std::is_same_v<T, double>) {
      out[at] = Reduced(args, in, z, y, x);
    }
  }
}

template void ScalarPoolPlane(const PoolPlanarArgs&, const double*, double*, size_t);
template void ScalarPoolPlane(const PoolPlanarArgs&, const int8_t*, int8_t*, size_t);
template void ScalarPoolPlane(const PoolPlanarArgs&, const uint8_t*, uint8_t*, size_t);

template <class T>
void PoolGeneralPlane(const GeneralWindow& window, const PoolPlanarArgs& args, const T* in, T* out,
                      size_t plane) {
  const size_t in_size = window.input_size(), out_size = window.output_size();
  in += plane * in_size;
  for (size_t i = 0; i < out_size; ++i) {
    const size_t at = plane * out_size + i;
    if (args.kind != PlanarPoolKind::kMax) {
      out[at] = static_cast<T>(GeneralReduced(window, args, in, i));
      continue;
    }
    std::optional<size_t> where;
    out[at] = GeneralMaximum(window, in, i, &where);
    if (args.indices == nullptr) continue;
    if (where && args.column_major_indices) where = ColumnMajor(window, *where);
    args.indices[at] = where ? static_cast<int64_t>(plane * in_size + *where) : -1;
  }
}

template void PoolGeneralPlane(const GeneralWindow&, const PoolPlanarArgs&, const float*, float*,
                               size_t);
template void PoolGeneralPlane(const GeneralWindow&, const PoolPlanarArgs&, const double*, double*,
                               size_t);
template void PoolGeneralPlane(const GeneralWindow&, const PoolPlanarArgs&, const int8_t*, int8_t*,
                               size_t);
template void PoolGeneralPlane(const GeneralWindow&, const PoolPlanarArgs&, const uint8_t*,
                               uint8_t*, size_t);

}  // namespace tenon
