// Sums and products of int8 and uint8 arrays with scales: com.microsoft QLinearAdd-1, QLinearMul-1.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/quantize.h"

namespace tenon::kernels {

enum class QuantizedBinaryOp { kAdd, kMul };

struct QuantizedOperand {
  const void* data;
  bool is_one;  // element for all of the result's
  float scale;
  int32_t zero_point;
};

// y[i] = saturate(round(f((a[i] - a_zero) * a_scale, (b[i] - b_zero) * b_scale) / scale) +
// zero_point), ties to even, as Dequantize and Quantize do. `type`, of 8 bits, is that of all
// three. y may be a or b. May be called from several threads at once.
void CombineQuantized(QuantizedBinaryOp op, const QuantizedOperand& a, const QuantizedOperand& b,
                      size_t n, float scale, int32_t zero_point, QuantizedType type, void* y);

}  // namespace tenon::kernels
