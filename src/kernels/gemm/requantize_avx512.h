// Converts 32-bit sums to int8 and uint8 with AVX-512. GCC 12 warns that the intrinsics without a
// mask read something uninitialised, so those with a mask for all lanes are used.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tenon::kernels {

inline constexpr __mmask16 kAllLanes = 0xffff;

// saturate(round(sum * scale) + zero_point), ties to even.
struct ByteRounding {
  __m512 low, high;
  __m512i zero_point;
};

__attribute__((target("avx512f"))) inline ByteRounding MakeByteRounding(int32_t zero_point,
                                                                        bool is_signed) {
  const int32_t least = (is_signed ? -128 : 0) - zero_point;
  return {_mm512_set1_ps(static_cast<float>(least)),
          _mm512_set1_ps(static_cast<float>(least + 255)), _mm512_set1_epi32(zero_point)};
}

__attribute__((target("avx512f"))) inline __m128i RoundToBytes(__m512i sums, __m512 scale,
                                                               const ByteRounding& rounding) {
  const __m512 scaled = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAllLanes, sums), scale);
  const __m512 bounded = _mm512_maskz_min_ps(
      kAllLanes, _mm512_maskz_max_ps(kAllLanes, scaled, rounding.low), rounding.high);
  const __m512i rounded = _mm512_maskz_cvtps_epi32(kAllLanes, bounded);
  return _mm512_maskz_cvtepi32_epi8(kAllLanes, _mm512_add_epi32(rounded, rounding.zero_point));
}

}  // namespace tenon::kernels
