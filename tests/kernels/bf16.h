// bfloat16 numbers for the tests of kernels that compute with them.
#pragma once

#include <bit>
#include <cstdint>

namespace tenon::kernels {

// Rounded to nearest, ties to even.
inline float ToBf16(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  return std::bit_cast<float>((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000u);
}

}  // namespace tenon::kernels
