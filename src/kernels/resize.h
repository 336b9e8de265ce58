// Weighted sums of elements at precomputed positions: the interpolations of Resize, Upsample,
// GridSample and DeformConv.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// y[o] = sum over k of weights[k * out + o] * x[indices[k * out + o]], for o in [0, out) and k in
// [0, count); indices are in [0, in).
template <class T>
struct ResizeTaps {
  size_t in = 0;
  size_t out = 0;
  size_t count = 0;
  const int32_t* indices = nullptr;
  const T* weights = nullptr;
  // Set by DoublesHalfPixels; ResizeRow may then go without the indices.
  bool doubles = false;
};

// Whether the taps are those of an axis twice as long whose every element lies between two
// neighbours, at the same distance for all even ones and all odd ones: out == 2 in, and o reads
// (o - 1) / 2 and the next, kept inside.
bool DoublesHalfPixels(const ResizeTaps<float>& taps);

// Applies the taps to a row. x and y do not overlap.
void ResizeRow(const ResizeTaps<float>& taps, const float* x, float* y);
void ResizeRow(const ResizeTaps<double>& taps, const double* x, double* y);

// The same with indices that may be negative: such an element counts as 0, whatever its weight.
void SampleElements(const ResizeTaps<float>& taps, const float* x, float* y);
void SampleElements(const ResizeTaps<double>& taps, const double* x, double* y);

// y[i] = sum over k of weights[k * weight_stride] * rows[k][i], for i in [0, n) and k in
// [0, count), count > 0. y overlaps no row.
void BlendRows(const float* const* rows, const float* weights, size_t weight_stride, size_t count,
               float* y, size_t n);
void BlendRows(const double* const* rows, const double* weights, size_t weight_stride, size_t count,
               double* y, size_t n);

}  // namespace tenon::kernels
