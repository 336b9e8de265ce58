// Element types that C++ lacks: floating point of 16 bits and less, as bit patterns with exact
// scalar conversions. Bulk conversions are in kernels/elementwise/convert.h.
#pragma once

#include <cstdint>

namespace tenon {

// IEEE 754 binary16.
struct Float16 {
  uint16_t bits = 0;
  Float16() = default;
  explicit Float16(float value);  // rounds to nearest even
  explicit operator float() const;
  static Float16 FromBits(uint16_t bits) {
    Float16 result;
    result.bits = bits;
    return result;
  }
};

// The upper half of a float.
struct Bfloat16 {
  uint16_t bits = 0;
  Bfloat16() = default;
  explicit Bfloat16(float value);  // rounds to nearest even, NaN stays NaN
  explicit operator float() const;
  static Bfloat16 FromBits(uint16_t bits) {
    Bfloat16 result;
    result.bits = bits;
    return result;
  }
};

static_assert(sizeof(Float16) == 2 && sizeof(Bfloat16) == 2);

}  // namespace tenon
