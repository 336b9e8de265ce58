// Index arithmetic of general convolutions; only for files beside it.
#pragma once

#include <algorithm>
#include <cstddef>
#include <iterator>

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

// Whether each output pixel is made of the input pixel in its place.
inline bool IsPointwise(const ConvGeneralShape& shape) {
  return std::all_of(std::begin(shape.dims), std::end(shape.dims), [](const ConvDim& dim) {
    return dim.kernel == 1 && dim.stride == 1 && dim.pad_begin == 0 && dim.in == dim.out;
  });
}

// Calls body(depth tap, height tap) for each row of taps, in the order of the weights.
template <class Body>
void ForEachTapRow(const ConvGeneralShape& shape, Body body) {
  for (size_t z = 0; z < shape.dims[0].kernel; ++z) {
    for (size_t y = 0; y < shape.dims[1].kernel; ++y) body(z, y);
  }
}

// Calls body(depth tap, height tap, width tap) for each tap, in the order of the weights.
template <class Body>
void ForEachTap(const ConvGeneralShape& shape, Body body) {
  ForEachTapRow(shape, [&](size_t z, size_t y) {
    for (size_t x = 0; x < shape.dims[2].kernel; ++x) body(z, y, x);
  });
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

// The inputs for one tap at output pixels `pixels`, zero outside the image.
inline void GatherTap(const ConvGeneralShape& shape, const float* plane, const Range& pixels,
                      size_t kz, size_t ky, size_t kx, float* out) {
  // Not a structured binding: Clang 14 cannot capture one.
  const ConvDim &depth = shape.dims[0], &height = shape.dims[1], &width = shape.dims[2];
  const ptrdiff_t shift = TapShift(width, kx);
  ForEachRowPiece(pixels, width.out, [&](size_t row, const Range& columns, size_t offset) {
    float* to = out + offset;
    const ptrdiff_t z =
        static_cast<ptrdiff_t>(row / height.out * depth.stride) + TapShift(depth, kz);
    const ptrdiff_t y =
        static_cast<ptrdiff_t>(row % height.out * height.stride) + TapShift(height, ky);
    const bool inside = z >= 0 && z < static_cast<ptrdiff_t>(depth.in) && y >= 0 &&
                        y < static_cast<ptrdiff_t>(height.in);
    const Range valid = StridedInside(width.out, width.stride, shift, width.in);
    const size_t first = std::clamp(valid.first, columns.first, columns.last);
    const size_t last = std::clamp(valid.last, first, columns.last);
    if (!inside || first == last) {
      std::fill_n(to, columns.size(), 0.0f);
      return;
    }
    const ptrdiff_t in_row = z * static_cast<ptrdiff_t>(height.in) + y;
    const float* from = plane + in_row * static_cast<ptrdiff_t>(width.in) + shift +
                        static_cast<ptrdiff_t>(first * width.stride);
    std::fill_n(to, first - columns.first, 0.0f);
    to += first - columns.first;
    if (width.stride == 1) {
      std::copy_n(from, last - first, to);
    } else {
      for (size_t x = 0; x < last - first; ++x) to[x] = from[x * width.stride];
    }
    std::fill_n(to + (last - first), columns.last - last, 0.0f);
  });
}

// Adds the products of a row of taps at input pixels `pixels` of a transposed convolution to an
// output plane: conv_transpose.cpp.
void AddTaps(const ConvGeneralShape& shape, const float* products, const Range& pixels, size_t kz,
             size_t ky, float* plane);

}  // namespace tenon::kernels
