// Functions of one int8 or uint8 element as tables of 256.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <tuple>
#include <vector>

#include "ops/framework/attributes.h"
#include "ops/framework/quantized_int8.h"

namespace tenon {

// The output for every input byte.
using Int8Table = std::array<uint8_t, 256>;

// f of the numbers that the bytes represent.
template <class F>
Int8Table TableOf(const Int8Quantization& from, const Int8Quantization& to, F&& f) {
  Int8Table table;
  for (int byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(byte)] = to.ByteOf(f(from.ValueOf(static_cast<uint8_t>(byte))));
  }
  return table;
}

// QLinearActivation of com.tenon: an activation of a quantized tensor; no activation quantizes
// anew.
struct QLinearActivationAttrs {
  std::string activation;
  std::vector<float> parameters;
  static constexpr auto Fields() {
    using A = QLinearActivationAttrs;
    return std::tuple(Field("activation", &A::activation),
                      Field("activation_params", &A::parameters));
  }
};

}  // namespace tenon
