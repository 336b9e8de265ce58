// Softmax of int8 and uint8 elements with scales: com.microsoft QLinearSoftmax-1.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/quantize.h"

namespace tenon::kernels {

// What all lines of a tensor share.
struct QuantizedSoftmax {
  // x_type and y_type have 8 bits.
  QuantizedSoftmax(float x_scale, QuantizedType x_type, float y_scale, int32_t y_zero_point,
                   QuantizedType y_type);

  std::array<float, 256> powers;  // exp of distances from the greatest element
  size_t distances;               // from this one on the result is the zero point
  uint8_t flip;                   // makes the order of the bytes that of their values
  float y_scale;
  int32_t y_zero_point;
  QuantizedType y_type;
};

// A line of n > 0 neighbouring elements: y[i] = saturate(round(p[i] / sum(p) / y_scale) +
// y_zero_point), ties to even, with p[i] = exp((x[i] - max(x)) x_scale). y may be x. Thread-safe.
void SoftmaxQuantizedLine(const QuantizedSoftmax& softmax, const uint8_t* x, size_t n, uint8_t* y);

// `columns` lines side by side: element i of each is at x[i * stride + column].
void SoftmaxQuantizedColumns(const QuantizedSoftmax& softmax, const uint8_t* x, size_t n,
                             size_t stride, size_t columns, uint8_t* y);

}  // namespace tenon::kernels
