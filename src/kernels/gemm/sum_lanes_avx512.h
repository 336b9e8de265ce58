// The sum of a vector; only for files that use AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace tenon::kernels {

// Modulo 2^32.
__attribute__((target("avx512f,avx512vl"))) inline int32_t SumOfLanes(__m512i x) {
  // Of halves, of their halves, and so on.
  const __m256i eight = _mm256_add_epi32(_mm512_maskz_extracti64x4_epi64(0xff, x, 0),
                                         _mm512_maskz_extracti64x4_epi64(0xff, x, 1));
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
  return _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 1)));
}

}  // namespace tenon::kernels
