// Element types narrower than 16 bits that C++ lacks: the four float8, float8e8m0, float4e2m1, the
// two float6 and the packed 4-bit and 2-bit integers. Scalar and exact; used to convert, not to
// compute.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/data_type.h"

namespace tenon {

// The rounding of float8e8m0, which only has powers of two, for a value between two of them.
enum class ScaleRounding : uint8_t { kUp, kDown, kNearest };

// Whether `type` is one of the float types below 16 bits.
bool IsNarrowFloat(DataType type);

// The value of a bit pattern of such a type.
double DecodeNarrowFloat(DataType type, uint8_t bits);

// The nearest value, ties to even. Beyond the largest finite value: that value if `saturate`, else
// infinity, or NaN for types without infinity; float4e2m1 and float6 always
// saturate and have 0 for NaN.
uint8_t EncodeNarrowFloat(DataType type, double value, bool saturate,
                          ScaleRounding rounding = ScaleRounding::kUp);

// Element `i` of packed storage with `bits` bits per element, the first in the lowest bits.
inline uint8_t UnpackBits(const uint8_t* packed, size_t i, size_t bits) {
  const size_t position = i * bits;
  const uint8_t* byte = packed + position / 8;
  unsigned both = byte[0];
  if (position % 8 + bits > 8) both |= unsigned{byte[1]} << 8;
  return static_cast<uint8_t>((both >> position % 8) & ((1u << bits) - 1));
}

// Sets the bits of element `i`, which may lie in two bytes.
inline void PackBits(uint8_t* packed, size_t i, size_t bits, uint8_t value) {
  const size_t position = i * bits;
  const unsigned mask = ((1u << bits) - 1) << position % 8;
  const unsigned shifted = (unsigned{value} << position % 8) & mask;
  uint8_t* byte = packed + position / 8;
  byte[0] = static_cast<uint8_t>((byte[0] & ~mask) | shifted);
  if (mask > 0xff) byte[1] = static_cast<uint8_t>((byte[1] & ~(mask >> 8)) | shifted >> 8);
}

}  // namespace tenon
