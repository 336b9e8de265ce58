#include "kernels/elementwise/convert_float.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/convert_float.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <bit>

#include "kernels/dispatch.h"
#include "kernels/unaligned.h"

#ifndef TENON_KERNELS_CONVERT_FLOAT_ONCE
#define TENON_KERNELS_CONVERT_FLOAT_ONCE
namespace tenon::kernels {
struct FloatCastTable {
  CastFunction from_float[kCastTypeCount];
  CastFunction to_float[kCastTypeCount];
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// These have no branches, so that the compiler vectorises loops over them.
HWY_INLINE float FromFloat16(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffu;
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  const uint32_t shifted = magnitude << 13;
  const uint32_t normal = shifted + (112u << 23);
  const uint32_t special = shifted | 0x7f800000u;
  // 2^-14 (1 + m) - 2^-14 is the subnormal 2^-14 m.
  const float subnormal = std::bit_cast<float>(shifted + (113u << 23)) - 6.103515625e-05f;
  uint32_t bits = magnitude >= 0x7c00u ? special : normal;
  bits = magnitude > 0x7c00u ? bits | 0x400000u : bits;  // a quiet NaN, as the instruction makes it
  bits = magnitude < 0x400u ? std::bit_cast<uint32_t>(subnormal) : bits;
  return std::bit_cast<float>(bits | sign);
}

HWY_INLINE uint16_t ToFloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t magnitude = bits & 0x7fffffffu;
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t normal = (magnitude - (112u << 23) + 0xfffu + (magnitude >> 13 & 1)) >> 13;
  // Adding 1/2 rounds at the last bit of a subnormal.
  const float rounded = std::bit_cast<float>(magnitude) + 0.5f;
  const uint32_t subnormal = std::bit_cast<uint32_t>(rounded) - 0x3f000000u;
  const uint32_t nan = 0x7e00u | (magnitude >> 13 & 0x1ffu);
  uint32_t half = magnitude < 0x38800000u ? subnormal : normal;
  half = magnitude >= 0x47800000u ? 0x7c00u : half;
  half = magnitude > 0x7f800000u ? nan : half;
  return static_cast<uint16_t>(half | sign);
}

HWY_INLINE float FromBfloat16(uint16_t x) {
  return std::bit_cast<float>(static_cast<uint32_t>(x) << 16);
}

HWY_INLINE uint16_t ToBfloat16(float value) {
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t rounded = (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
  const uint32_t nan = bits >> 16 | 0x40u;
  return static_cast<uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

void Float16ToFloats(const void* x, void* y, size_t n) {
  const uint16_t* from = static_cast<const uint16_t*>(x);
  float* to = static_cast<float*>(y);
  size_t i = 0;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> d16;
  const hn::Rebind<uint16_t, decltype(d)> du16;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(hn::PromoteTo(d, hn::BitCast(d16, hn::LoadU(du16, from + i))), d, to + i);
  }
#endif
  for (; i < n; ++i) to[i] = FromFloat16(LoadUnaligned(from + i));
}

void FloatsToFloat16(const void* x, void* y, size_t n) {
  const float* from = static_cast<const float*>(x);
  uint16_t* to = static_cast<uint16_t*>(y);
  size_t i = 0;
#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX2
  const hn::ScalableTag<float> d;
  const hn::Rebind<hwy::float16_t, decltype(d)> d16;
  const hn::Rebind<uint16_t, decltype(d)> du16;
  for (; i + hn::Lanes(d) <= n; i += hn::Lanes(d)) {
    hn::StoreU(hn::BitCast(du16, hn::DemoteTo(d16, hn::LoadU(d, from + i))), du16, to + i);
  }
#endif
  for (; i < n; ++i) to[i] = ToFloat16(from[i]);
}

template <class From, class To, To (*kConvert)(From)>
void Map(const void* x, void* y, size_t n) {
  const From* from = static_cast<const From*>(x);
  To* to = static_cast<To*>(y);
  for (size_t i = 0; i < n; ++i) to[i] = kConvert(from[i]);
}

template <class From>
float ToFloat(From x) {
  return static_cast<float>(x);
}
// The result for a number that does not fit is unspecified: see convert.cpp.
template <class To>
__attribute__((no_sanitize("float-cast-overflow"))) To Truncate(float x) {
  if constexpr (sizeof(To) < 4) {
    return static_cast<To>(static_cast<int32_t>(x));
  } else {
    return static_cast<To>(x);
  }
}
HWY_INLINE uint8_t ToBool(float x) { return x != 0; }
HWY_INLINE double ToDouble(float x) { return static_cast<double>(x); }

template <class To>
constexpr CastFunction kTruncate = &Map<float, To, &Truncate<To>>;
template <class From>
constexpr CastFunction kToFloat = &Map<From, float, &ToFloat<From>>;

// In the order of CastType. Null: not used often enough for a copy per target.
const FloatCastTable kFloatCastTable = {
    {nullptr, &Map<float, double, &ToDouble>, kTruncate<int8_t>, nullptr, kTruncate<int32_t>,
     kTruncate<int64_t>, kTruncate<uint8_t>, nullptr, nullptr, nullptr,
     &Map<float, uint8_t, &ToBool>, &FloatsToFloat16, &Map<float, uint16_t, &ToBfloat16>},
    {nullptr, kToFloat<double>, kToFloat<int8_t>, nullptr, kToFloat<int32_t>, kToFloat<int64_t>,
     kToFloat<uint8_t>, nullptr, nullptr, nullptr, kToFloat<uint8_t>, &Float16ToFloats,
     &Map<uint16_t, float, &FromBfloat16>},
};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

CastFunction FindFloatCast(CastType from, CastType to) {
  const auto& table = TENON_SELECT_TABLE(FloatCastTable, kFloatCastTable);
  if (from == CastType::kFloat) return table.from_float[static_cast<size_t>(to)];
  if (to == CastType::kFloat) return table.to_float[static_cast<size_t>(from)];
  return nullptr;
}

}  // namespace tenon::kernels
#endif
