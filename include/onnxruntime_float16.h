// The 16-bit floating-point formats as C++ types: storage, conversion to and from float, and tests
// of the bits. Header of onnxruntime_cxx_api.h; C++17.
#pragma once

#include <cstdint>
#include <cstring>

namespace onnxruntime_float16 {

namespace detail {

inline uint32_t BitsOf(float value) noexcept {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof(bits));
  return bits;
}

inline float FloatOf(uint32_t bits) noexcept {
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return value;
}

// `bits` without its last `shift` ones, rounded to nearest, ties to even.
constexpr uint32_t RoundedShift(uint32_t bits, int shift) noexcept {
  const uint32_t kept = bits >> shift;
  const uint32_t rest = bits & ((1u << shift) - 1);
  const uint32_t half = 1u << (shift - 1);
  return kept + (rest > half || (rest == half && (kept & 1)) ? 1 : 0);
}

}  // namespace detail

// The common base of both formats. Format says where exponent and fraction lie.
template <class Derived, uint16_t kExponentMask, uint16_t kFractionMask>
struct Half {
  uint16_t val{0};

  static constexpr uint16_t kSignMask = 0x8000;
  static constexpr uint16_t kPositiveInfinityBits = kExponentMask;
  static constexpr uint16_t kNegativeInfinityBits = kExponentMask | kSignMask;
  static constexpr uint16_t kMaxValueBits = kExponentMask - 1;
  static constexpr uint16_t kMinValueBits = kMaxValueBits | kSignMask;

  constexpr bool IsNegative() const noexcept { return (val & kSignMask) != 0; }
  constexpr bool IsNaN() const noexcept { return Magnitude() > kExponentMask; }
  constexpr bool IsFinite() const noexcept { return Magnitude() < kExponentMask; }
  constexpr bool IsInfinity() const noexcept { return Magnitude() == kExponentMask; }
  constexpr bool IsPositiveInfinity() const noexcept { return val == kExponentMask; }
  constexpr bool IsNegativeInfinity() const noexcept {
    return val == static_cast<uint16_t>(kExponentMask | kSignMask);
  }
  constexpr bool IsNaNOrZero() const noexcept { return IsNaN() || Magnitude() == 0; }
  constexpr bool IsNormal() const noexcept {
    return IsFinite() && (Magnitude() & kExponentMask) != 0;
  }
  constexpr bool IsSubnormal() const noexcept {
    return Magnitude() != 0 && (Magnitude() & kExponentMask) == 0;
  }
  constexpr Derived Abs() const noexcept { return Derived::FromBits(Magnitude()); }
  constexpr Derived Negate() const noexcept {
    return IsNaN() ? Derived::FromBits(val)
                   : Derived::FromBits(static_cast<uint16_t>(val ^ kSignMask));
  }
  static constexpr bool AreZero(const Half& a, const Half& b) noexcept {
    return (a.Magnitude() | b.Magnitude()) == 0;
  }

  // As in IEEE 754, NaN equals nothing and -0 equals 0.
  friend constexpr bool operator==(const Derived& a, const Derived& b) noexcept {
    return !a.IsNaN() && !b.IsNaN() && (a.val == b.val || AreZero(a, b));
  }
  friend constexpr bool operator!=(const Derived& a, const Derived& b) noexcept {
    return !(a == b);
  }
  friend constexpr bool operator<(const Derived& a, const Derived& b) noexcept {
    if (a.IsNaN() || b.IsNaN() || AreZero(a, b)) return false;
    if (a.IsNegative() != b.IsNegative()) return a.IsNegative();
    return a.IsNegative() ? a.val > b.val : a.val < b.val;
  }

 private:
  constexpr uint16_t Magnitude() const noexcept {
    return static_cast<uint16_t>(val & (kExponentMask | kFractionMask));
  }
};

// float16: 1 sign, 5 exponent and 10 fraction bits.
template <class Derived>
struct Float16Impl : Half<Derived, 0x7C00, 0x03FF> {
  static constexpr uint16_t kPositiveQNaNBits = 0x7E00;
  static constexpr uint16_t kNegativeQNaNBits = 0xFE00;
  static constexpr uint16_t kOneBits = 0x3C00;
  static constexpr uint16_t kMinusOneBits = 0xBC00;

 protected:
  static uint16_t ToUint16Impl(float value) noexcept {
    const uint32_t bits = detail::BitsOf(value);
    const uint32_t sign = (bits >> 16) & 0x8000;
    const uint32_t magnitude = bits & 0x7FFFFFFF;
    if (magnitude > 0x7F800000) return static_cast<uint16_t>(sign | 0x7E00);
    if (magnitude >= 0x47800000) return static_cast<uint16_t>(sign | 0x7C00);  // 2^16 and more
    if (magnitude >= 0x38800000) {  // normal: 2^-14 and more; rounding may carry into infinity
      return static_cast<uint16_t>(sign | detail::RoundedShift(magnitude - 0x38000000, 13));
    }
    const int shift = 126 - static_cast<int>(magnitude >> 23);
    if (shift > 24) return static_cast<uint16_t>(sign);  // less than half of the least subnormal
    const uint32_t fraction = (magnitude & 0x7FFFFF) | 0x800000;
    return static_cast<uint16_t>(sign | detail::RoundedShift(fraction, shift));
  }
  float ToFloatImpl() const noexcept {
    const uint32_t sign = static_cast<uint32_t>(this->val & 0x8000) << 16;
    const uint32_t magnitude = this->val & 0x7FFF;
    if (magnitude >= 0x7C00) return detail::FloatOf(sign | 0x7F800000 | (magnitude << 13));
    if (magnitude >= 0x0400) return detail::FloatOf(sign | ((magnitude << 13) + 0x38000000));
    const float subnormal = static_cast<float>(magnitude) * 5.9604644775390625e-08f;  // 2^-24
    return sign != 0 ? -subnormal : subnormal;
  }
};

// bfloat16: the upper half of a float.
template <class Derived>
struct BFloat16Impl : Half<Derived, 0x7F80, 0x007F> {
  static constexpr uint16_t kPositiveQNaNBits = 0x7FC1;
  static constexpr uint16_t kNegativeQNaNBits = 0xFFC1;
  static constexpr uint16_t kOneBits = 0x3F80;
  static constexpr uint16_t kMinusOneBits = 0xBF80;

 protected:
  static uint16_t ToUint16Impl(float value) noexcept {
    const uint32_t bits = detail::BitsOf(value);
    if ((bits & 0x7FFFFFFF) > 0x7F800000) return static_cast<uint16_t>((bits >> 16) | 0x0040);
    return static_cast<uint16_t>(detail::RoundedShift(bits, 16));
  }
  float ToFloatImpl() const noexcept {
    return detail::FloatOf(static_cast<uint32_t>(this->val) << 16);
  }
};

}  // namespace onnxruntime_float16
