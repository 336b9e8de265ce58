#include "ops/framework/narrow_types.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tenon {
namespace {

struct FloatFormat {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  uint8_t largest;   // bit pattern of the largest finite value
  uint8_t infinity;  // 0: there is none
  uint8_t nan;       // 0: there is none
  bool signed_zero;  // else the pattern of -0 is NaN
};

FloatFormat FormatOf(DataType type) {
  switch (type) {
    case DataType::kFloat8e4m3fn:
      return {4, 3, 7, 0x7e, 0, 0x7f, true};
    case DataType::kFloat8e4m3fnuz:
      return {4, 3, 8, 0x7f, 0, 0x80, false};
    case DataType::kFloat8e5m2:
      return {5, 2, 15, 0x7b, 0x7c, 0x7e, true};
    case DataType::kFloat8e5m2fnuz:
      return {5, 2, 16, 0x7f, 0, 0x80, false};
    case DataType::kFloat6e2m3:
      return {2, 3, 1, 0x1f, 0, 0, true};
    case DataType::kFloat6e3m2:
      return {3, 2, 3, 0x1f, 0, 0, true};
    default:  // float4e2m1
      return {2, 1, 1, 0x7, 0, 0, true};
  }
}

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr int kScaleBias = 127;
constexpr uint8_t kScaleNaN = 0xff;

uint8_t EncodeScale(double value, bool saturate, ScaleRounding rounding) {
  if (std::isnan(value)) return kScaleNaN;
  value = std::abs(value);
  int exponent = -kScaleBias;
  bool has_remainder = false;
  if (std::isinf(value)) {
    exponent = kScaleBias + 1;
  } else if (value >= std::ldexp(1.0, -kScaleBias)) {
    exponent = std::ilogb(value);
    const double remainder = value / std::ldexp(1.0, exponent);
    has_remainder = rounding == ScaleRounding::kUp        ? remainder > 1
                    : rounding == ScaleRounding::kNearest ? remainder >= 1.5
                                                          : false;
  }
  exponent += has_remainder;
  if (exponent > kScaleBias) return saturate ? kScaleNaN - 1 : kScaleNaN;
  return static_cast<uint8_t>(exponent + kScaleBias);
}

}  // namespace

bool IsNarrowFloat(DataType type) {
  switch (type) {
    case DataType::kFloat8e4m3fn:
    case DataType::kFloat8e4m3fnuz:
    case DataType::kFloat8e5m2:
    case DataType::kFloat8e5m2fnuz:
    case DataType::kFloat8e8m0:
    case DataType::kFloat4e2m1:
    case DataType::kFloat6e2m3:
    case DataType::kFloat6e3m2:
      return true;
    default:
      return false;
  }
}

double DecodeNarrowFloat(DataType type, uint8_t bits) {
  if (type == DataType::kFloat8e8m0) {
    return bits == kScaleNaN ? kNaN : std::ldexp(1.0, bits - kScaleBias);
  }
  const FloatFormat format = FormatOf(type);
  const int sign_shift = format.exponent_bits + format.mantissa_bits;
  const int magnitude = bits & ((1 << sign_shift) - 1);
  const bool negative = (bits >> sign_shift) & 1;
  if (!format.signed_zero && bits == format.nan) return kNaN;
  double value;
  if (magnitude > format.largest) {
    value = magnitude == format.infinity ? std::numeric_limits<double>::infinity() : kNaN;
  } else {
    const int exponent = magnitude >> format.mantissa_bits;
    const int fraction = magnitude & ((1 << format.mantissa_bits) - 1);
    const int significand = exponent == 0 ? fraction : fraction + (1 << format.mantissa_bits);
    value = std::ldexp(significand, std::max(exponent, 1) - format.bias - format.mantissa_bits);
  }
  return negative ? -value : value;
}

uint8_t EncodeNarrowFloat(DataType type, double value, bool saturate, ScaleRounding rounding) {
  if (type == DataType::kFloat8e8m0) return EncodeScale(value, saturate, rounding);
  const FloatFormat format = FormatOf(type);
  const auto sign =
      static_cast<uint8_t>(std::signbit(value) << (format.exponent_bits + format.mantissa_bits));
  const bool saturates = saturate || IsSubByte(type);
  if (std::isnan(value)) return format.signed_zero ? format.nan | sign : format.nan;
  const double magnitude = std::abs(value);
  int code = format.largest + 1;
  if (magnitude == 0) {
    code = 0;
  } else if (!std::isinf(magnitude)) {
    // The unit in the last place at this magnitude; subnormals share that of the least exponent.
    const int exponent = std::max(std::ilogb(magnitude), 1 - format.bias);
    const double units = std::nearbyint(std::ldexp(magnitude, format.mantissa_bits - exponent));
    if (exponent + format.bias < 1 << format.exponent_bits) {
      code = ((exponent + format.bias - 1) << format.mantissa_bits) + static_cast<int>(units);
    }
  }
  if (code > format.largest) {
    if (saturates) {
      code = format.largest;
    } else {
      code = format.infinity ? format.infinity : format.nan;
      if (!format.signed_zero) return format.nan;
    }
  }
  if (code == 0 && !format.signed_zero) return 0;
  return static_cast<uint8_t>(code) | sign;
}

}  // namespace tenon
