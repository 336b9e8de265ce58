// Scalar convolutions of doubles, which are rare in models: loops over the window.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/conv/conv_general.h"

namespace tenon {

// Taps [begin, end) of a window dimension at output position `out` that lie inside the input.
struct TapRange {
  size_t begin = 0, end = 0;
};
inline TapRange TapsInside(const kernels::ConvDim& dim, size_t out) {
  const auto first = static_cast<int64_t>(out * dim.stride) - static_cast<int64_t>(dim.pad_begin);
  const auto dilation = static_cast<int64_t>(dim.dilation);
  const int64_t begin = first >= 0 ? 0 : (-first + dilation - 1) / dilation;
  const int64_t room = static_cast<int64_t>(dim.in) - first;
  const int64_t end = room <= 0 ? 0 : (room + dilation - 1) / dilation;
  const auto taps = static_cast<int64_t>(dim.kernel);
  return {static_cast<size_t>(std::min(begin, taps)),
          static_cast<size_t>(std::clamp(end, std::min(begin, taps), taps))};
}

// Calls body(z, y, x) for all positions of three dimensions, the last one fastest.
template <class Body>
void ForEachPosition(size_t depth, size_t height, size_t width, Body&& body) {
  for (size_t z = 0; z < depth; ++z) {
    for (size_t y = 0; y < height; ++y) {
      for (size_t x = 0; x < width; ++x) body(z, y, x);
    }
  }
}

// Calls body(tap, position in the input), both row-major, for the taps of the window at an output
// position that lie inside the input.
template <class Body>
void ForEachTap(const kernels::ConvDim (&dims)[3], size_t z, size_t y, size_t x, Body&& body) {
  const TapRange a = TapsInside(dims[0], z), b = TapsInside(dims[1], y), c = TapsInside(dims[2], x);
  const auto at = [&](size_t i, size_t out, size_t tap) {
    return out * dims[i].stride + tap * dims[i].dilation - dims[i].pad_begin;
  };
  for (size_t i = a.begin; i < a.end; ++i) {
    for (size_t j = b.begin; j < b.end; ++j) {
      const size_t tap_row = (i * dims[1].kernel + j) * dims[2].kernel;
      const size_t row = (at(0, z, i) * dims[1].in + at(1, y, j)) * dims[2].in;
      for (size_t k = c.begin; k < c.end; ++k) body(tap_row + k, row + at(2, x, k));
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

// Output plane `plane` = image * out_channels + channel of Conv.
inline void ScalarConvPlane(const ScalarConvArgs& args, size_t plane) {
  const kernels::ConvGeneralShape& s = args.shape;
  const size_t image = plane / s.out_channels, channel = plane % s.out_channels;
  const size_t depth = s.in_channels / s.groups;
  const size_t group = channel / (s.out_channels / s.groups);
  const size_t size = InputSize(s.dims), taps = KernelSize(s.dims);
  const double* in = args.in + (image * s.in_channels + group * depth) * size;
  const double* weights = args.weights + channel * depth * taps;
  double* out = args.out + plane * OutputSize(s.dims);
  ForEachPosition(s.dims[0].out, s.dims[1].out, s.dims[2].out, [&](size_t z, size_t y, size_t x) {
    double sum = args.bias ? args.bias[channel] : 0;
    for (size_t c = 0; c < depth; ++c) {
      ForEachTap(s.dims, z, y, x,
                 [&](size_t tap, size_t i) { sum += in[c * size + i] * weights[c * taps + tap]; });
    }
    *out++ = sum;
  });
}

// The same of ConvTranspose: every input element adds its window to the output.
inline void ScalarConvTransposePlane(const ScalarConvArgs& args, size_t plane) {
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
  for (size_t c = 0; c < depth; ++c) {
    const size_t in_channel = group * depth + c;
    const double* in = args.in + (image * s.in_channels + in_channel) * size;
    const double* weights = args.weights + (in_channel * width + channel % width) * taps;
    ForEachPosition(dims[0].out, dims[1].out, dims[2].out, [&](size_t z, size_t y, size_t x) {
      const double value = *in++;
      ForEachTap(dims, z, y, x, [&](size_t tap, size_t i) { out[i] += value * weights[tap]; });
    });
  }
}

}  // namespace tenon
