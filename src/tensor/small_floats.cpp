#include "tensor/small_floats.h"

#include <bit>
#include <cmath>

namespace tenon {

Float16::Float16(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  const auto sign = static_cast<uint16_t>((word >> 16) & 0x8000);
  const uint32_t magnitude = word & 0x7fffffff;
  if (magnitude >= 0x7f800000) {  // infinity, or NaN kept quiet
    const uint32_t payload = magnitude > 0x7f800000 ? 0x200 | ((magnitude >> 13) & 0x3ff) : 0;
    bits = static_cast<uint16_t>(sign | 0x7c00 | payload);
  } else if (magnitude >= 0x477ff000) {  // rounds to 2^16 or above
    bits = static_cast<uint16_t>(sign | 0x7c00);
  } else if (magnitude < 0x38800000) {
    // Subnormal results: adding 0.5 aligns the significand so that the hardware rounds it.
    const float aligned = std::bit_cast<float>(magnitude) + 0.5f;
    bits = static_cast<uint16_t>(sign | (std::bit_cast<uint32_t>(aligned) - 0x3f000000));
  } else {
    const uint32_t odd = (magnitude >> 13) & 1;
    bits = static_cast<uint16_t>(sign | ((magnitude - 0x38000000 + 0xfff + odd) >> 13));
  }
}

Float16::operator float() const {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16;
  const uint32_t exponent = (bits >> 10) & 0x1f;
  const uint32_t fraction = bits & 0x3ff;
  if (exponent == 0) {
    const float magnitude = std::ldexp(static_cast<float>(fraction), -24);
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(magnitude));
  }
  const uint32_t wide_exponent = exponent == 31 ? 255 : exponent + 112;
  return std::bit_cast<float>(sign | (wide_exponent << 23) | (fraction << 13));
}

Bfloat16::Bfloat16(float value) {
  const uint32_t word = std::bit_cast<uint32_t>(value);
  if ((word & 0x7fffffff) > 0x7f800000) {
    bits = static_cast<uint16_t>((word >> 16) | 0x40);
  } else {
    bits = static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
  }
}

Bfloat16::operator float() const { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); }

}  // namespace tenon
