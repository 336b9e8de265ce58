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

// The same for two rows of 32 sums: [0] and [1] are the first row, [2] and [3] the second, and so
// are the halves of the result. Faster: narrowing saturates, so no bounds are needed.
// |sums * scales| < 2^31.
__attribute__((target("avx512f,avx512bw"))) inline __m512i RoundRowsToBytes(
    const __m512i (&sums)[4], __m512 low_scale, __m512 high_scale, int32_t zero_point,
    bool is_signed) {
  __m512i rounded[4];
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    const __m512 scaled =
        _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAllLanes, sums[i]), i % 2 ? high_scale : low_scale);
    rounded[i] = _mm512_maskz_cvtps_epi32(kAllLanes, scaled);
  }
  const __m512i zero = _mm512_set1_epi16(static_cast<int16_t>(zero_point));
  const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(rounded[0], rounded[1]), zero);
  const __m512i second = _mm512_adds_epi16(_mm512_packs_epi32(rounded[2], rounded[3]), zero);
  const __m512i bytes =
      is_signed ? _mm512_packs_epi16(first, second) : _mm512_packus_epi16(first, second);
  // Each 128 bits hold four elements of each of the four vectors.
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return _mm512_maskz_permutexvar_epi32(kAllLanes, order, bytes);
}

}  // namespace tenon::kernels
