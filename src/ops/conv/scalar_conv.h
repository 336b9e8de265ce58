// Convolutions of doubles, which are rare in models: products with windows that are gathered.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/conv/conv_general.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/gemm/gemm_any.h"

namespace tenon {

// Calls body(tap, position in the input), both row-major, for the taps of the window at an output
// position that lie inside the input.
template <class Body>
void ForEachTap(const kernels::ConvDim (&dims)[3], size_t z, size_t y, size_t x, Body&& body) {
  const auto taps_inside = [](const kernels::ConvDim& dim, size_t out) {
    return kernels::ValidTaps(kernels::FirstTap(out, dim.stride, dim.pad_begin), dim.dilation,
                              dim.kernel, dim.in);
  };
  const kernels::TapRange a = taps_inside(dims[0], z), b = taps_inside(dims[1], y),
                          c = taps_inside(dims[2], x);
  const auto at = [&](size_t i, size_t out, size_t tap) {
    return out * dims[i].stride + tap * dims[i].dilation - dims[i].pad_begin;
  };
  for (size_t i = a.first; i < a.last; ++i) {
    for (size_t j = b.first; j < b.last; ++j) {
      const size_t tap_row = (i * dims[1].kernel + j) * dims[2].kernel;
      const size_t row = (at(0, z, i) * dims[1].in + at(1, y, j)) * dims[2].in;
      for (size_t k = c.first; k < c.last; ++k) body(tap_row + k, row + at(2, x, k));
    }
  }
}

inline size_t InputSize(const kernels::ConvDim (&dims)[3]) {
  return dims[0].in * dims[1].in * dims[2].in;
}
inline size_t OutputSize(const kernels::ConvDim (&dims)[3]) {
  return dims[0].out * dims[1].out * dims[2].out;
}
inline size_t KernelSize(const kernels::ConvDim (&dims)[3]) {
  return dims[0].kernel * dims[1].kernel * dims[2].kernel;
}

// Operands of a convolution of doubles; the shapes are those of kernels::ConvGeneralArgs.
struct ScalarConvArgs {
  kernels::ConvGeneralShape shape;
  const double* in;
  const double* weights;
  const double* bias;  // of each output channel, or null
  double* out;
};

// Pixels that are multiplied at a time; their windows stay in the caches.
inline constexpr size_t kScalarConvPixels = 32;

// Doubles that a task of Conv needs.
inline size_t ScalarConvScratch(const kernels::ConvGeneralShape& s) {
  const size_t window = s.in_channels / s.groups * KernelSize(s.dims);
  return (window + s.out_channels / s.groups) * kScalarConvPixels;
}

// Output pixels [first, first + n) of a group's channels, n <= kScalarConvPixels: the rows that are
// returned lie in `scratch`, without bias. `stack` = image * groups + group.
inline const double* ScalarConvPixels(const ScalarConvArgs& args, size_t stack, size_t first,
                                      size_t n, double* scratch) {
  const kernels::ConvGeneralShape& s = args.shape;
  const size_t depth = s.in_channels / s.groups, channels = s.out_channels / s.groups;
  const size_t size = InputSize(s.dims), taps = KernelSize(s.dims);
  const double* in = args.in + stack * depth * size;
  double* windows = scratch + channels * kScalarConvPixels;
  std::fill_n(windows, depth * taps * n, 0.0);
  size_t row = first / s.dims[2].out, x = first % s.dims[2].out;
  for (size_t i = 0; i < n; ++i, ++x) {
    if (x == s.dims[2].out) x = 0, ++row;
    ForEachTap(s.dims, row / s.dims[1].out, row % s.dims[1].out, x, [&](size_t tap, size_t at) {
      for (size_t c = 0; c < depth; ++c) windows[(c * taps + tap) * n + i] = in[c * size + at];
    });
  }
  const double* weights = args.weights + stack % s.groups * channels * depth * taps;
  kernels::MultiplyRows<double>({weights, depth * taps, 1}, {windows, n, 1}, channels, n,
                                depth * taps, scratch);
  return scratch;
}

// Doubles that a task of ConvTranspose needs.
inline size_t ScalarConvTransposeScratch(const kernels::ConvGeneralShape& s) {
  return KernelSize(s.dims) * kScalarConvPixels;
}

// Output plane `plane` = image * out_channels + channel of ConvTranspose: every input pixel adds
// its window.
inline void ScalarConvTransposePlane(const ScalarConvArgs& args, size_t plane, double* scratch) {
  const kernels::ConvGeneralShape& s = args.shape;
  const size_t image = plane / s.out_channels, channel = plane % s.out_channels;
  const size_t depth = s.in_channels / s.groups, width = s.out_channels / s.groups;
  const size_t group = channel / width;
  // The window moves over the output as that of a Conv moves over its input.
  kernels::ConvDim dims[3];
  for (size_t i = 0; i < 3; ++i) {
    dims[i] = s.dims[i];
    std::swap(dims[i].in, dims[i].out);
  }
  const size_t size = OutputSize(dims), taps = KernelSize(dims);
  double* out = args.out + plane * InputSize(dims);
  std::fill_n(out, InputSize(dims), args.bias ? args.bias[channel] : 0);
  const double* in = args.in + (image * s.groups + group) * depth * size;
  const double* weights = args.weights + (group * depth * width + channel % width) * taps;
  for (size_t first = 0; first < size; first += kScalarConvPixels) {
    const size_t n = std::min(kScalarConvPixels, size - first);
    kernels::MultiplyRows<double>({weights, 1, width * taps}, {in + first, size, 1}, taps, n, depth,
                                  scratch);
    for (size_t i = 0; i < n; ++i) {
      const size_t row = (first + i) / dims[2].out;
      ForEachTap(dims, row / dims[1].out, row % dims[1].out, (first + i) % dims[2].out,
                 [&](size_t tap, size_t at) { out[at] += scratch[tap * n + i]; });
    }
  }
}

}  // namespace tenon
