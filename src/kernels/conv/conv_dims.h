// Index arithmetic of general convolutions; only for conv_general.cpp and conv_transpose.cpp.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/conv/conv_general_args.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

inline size_t InPixels(const ConvGeneralShape& shape) {
  return shape.dims[0].in * shape.dims[1].in * shape.dims[2].in;
}
inline size_t OutPixels(const ConvGeneralShape& shape) {
  return shape.dims[0].out * shape.dims[1].out * shape.dims[2].out;
}
inline size_t KernelTaps(const ConvGeneralShape& shape) {
  return shape.dims[0].kernel * shape.dims[1].kernel * shape.dims[2].kernel;
}

// Coordinates x in [0, count) for which x * stride + shift lies in [0, size).
inline Range StridedInside(size_t count, size_t stride, ptrdiff_t shift, size_t size) {
  const ptrdiff_t step = static_cast<ptrdiff_t>(stride);
  const ptrdiff_t end = static_cast<ptrdiff_t>(size) - shift;
  const size_t first = shift >= 0 ? 0 : static_cast<size_t>((-shift + step - 1) / step);
  const size_t last = end <= 0 ? 0 : static_cast<size_t>((end + step - 1) / step);
  const size_t bounded = std::min(first, count);
  return {bounded, std::clamp(last, bounded, count)};
}

// The distance that tap `tap` adds to x * stride.
inline ptrdiff_t TapShift(const ConvDim& dim, size_t tap) {
  return static_cast<ptrdiff_t>(tap * dim.dilation) - static_cast<ptrdiff_t>(dim.pad_begin);
}

// Whether only the last two axes matter: the first axis has size 1, and so has the kernel there.
inline bool IsPlanar(const ConvGeneralShape& shape) {
  const ConvDim& depth = shape.dims[0];
  return depth.in == 1 && depth.out == 1 && depth.kernel == 1 && depth.pad_begin == 0;
}

// Calls body(depth tap, height tap, width tap) for each tap, in the order of the weights.
template <class Body>
void ForEachTap(const ConvGeneralShape& shape, Body body) {
  for (size_t z = 0; z < shape.dims[0].kernel; ++z) {
    for (size_t y = 0; y < shape.dims[1].kernel; ++y) {
      for (size_t x = 0; x < shape.dims[2].kernel; ++x) body(z, y, x);
    }
  }
}

// Calls body(row, columns, offset) for the pieces of rows that make up pixels [pixels.first,
// pixels.last): the row's number, its columns, and the piece's offset in the range.
template <class Body>
void ForEachRowPiece(const Range& pixels, size_t width, Body body) {
  for (size_t p = pixels.first; p < pixels.last;) {
    const size_t row = p / width;
    const size_t first = p - row * width;
    const size_t last = std::min(width, first + pixels.last - p);
    body(row, Range{first, last}, p - pixels.first);
    p += last - first;
  }
}

}  // namespace tenon::kernels
