// The int8 and uint8 elements of quantized tensors, and the numbers that they represent.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>

#include "ir/shape_context.h"
#include "runtime/kernel_context.h"

namespace tenon {

// Of one tensor.
struct Int8Quantization {
  bool is_signed = false;
  float scale = 1;
  int zero_point = 0;

  float ValueOf(uint8_t byte) const {
    const int stored = is_signed ? static_cast<int8_t>(byte) : byte;
    return static_cast<float>(stored - zero_point) * scale;
  }
  // Ties to even. NaN becomes the least value.
  uint8_t ByteOf(float value) const {
    const float least = is_signed ? -128 : 0;
    const float shift = static_cast<float>(zero_point);
    const float rounded = std::nearbyint(value / scale) + shift;
    const float kept = std::fmin(std::fmax(rounded, least), least + 255);
    return static_cast<uint8_t>(static_cast<int>(kept));
  }
};

inline int ByteAt(const Tensor& tensor) {
  const uint8_t byte = *static_cast<const uint8_t*>(tensor.raw());
  return tensor.type() == DataType::kInt8 ? static_cast<int8_t>(byte) : byte;
}

// Of a scale and a zero point, which may be absent, in two inputs.
inline Int8Quantization QuantizationIn(const KernelContext& context, size_t scale,
                                       size_t zero_point, DataType type) {
  Int8Quantization q;
  q.is_signed = type == DataType::kInt8;
  q.scale = *context.Input(scale).data<float>();
  if (context.HasInput(zero_point)) q.zero_point = ByteAt(context.Input(zero_point));
  return q;
}

// Checks that each of the present inputs has one element. Unknown shapes pass.
inline Status CheckOneElementEach(const ShapeContext& context,
                                  std::initializer_list<size_t> inputs) {
  for (const size_t i : inputs) {
    if (!context.HasInput(i)) continue;
    const Result<SymbolicShape> shape = context.Input(i);
    if (!shape) {
      if (!IsUnknownShape(shape.error())) return shape.error();
      continue;
    }
    const Dim count = shape->NumElements();
    if (count.is_number() && !(count == Dim(1))) {
      return InvalidArgument("input {}: expected one element, got {}", i, *shape);
    }
  }
  return OkStatus();
}

}  // namespace tenon
