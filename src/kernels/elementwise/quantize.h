// Linear quantization of dense arrays: QuantizeLinear and DequantizeLinear between float and
// integers of 8 and 16 bits. All functions may be called from several threads at once.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

enum class QuantizedType : uint8_t { kUint8, kInt8, kUint16, kInt16, kInt32 };

// The scales of a run of elements: one scale and zero point for all, or one for each element.
struct QuantizationRun {
  const float* scales;
  const int32_t* zero_points;  // null: 0. In the range of the quantized type
  bool per_element;
};

// y[i] = saturate(round(x[i] / scale) + zero_point), ties to even. NaN becomes the least value.
// `type` is of 8 or 16 bits.
void Quantize(const float* x, size_t n, const QuantizationRun& run, QuantizedType type, void* y);

// y[i] = (x[i] - zero_point) * scale; the difference is computed in 32 bits.
void Dequantize(const void* x, size_t n, const QuantizationRun& run, QuantizedType type, float* y);

struct FloatRange {
  float min, max;
};
// The least and the greatest of 0 and x[0], ..., x[n - 1].
FloatRange RangeWithZero(const float* x, size_t n);

// How many elements are worth a task of their own; a multiple of 8.
inline constexpr size_t kQuantizeGrain = 32768;

}  // namespace tenon::kernels
