// Rounds blocks of floats to parts of 8 bits. Included where AVX-512 is known at compile time or
// checked by the caller.
#pragma once

#include <immintrin.h>

#include <cmath>
#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// Some unmasked intrinsics read variables that GCC considers uninitialised; these masks are whole.
inline constexpr __mmask8 kAll64 = 0xff;
inline constexpr __mmask16 kAll32 = 0xffff;

#define TENON_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

// The first n floats of 16, and zeros.
TENON_AVX512 inline __m512 LoadFirst(const float* x, size_t n) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1), x);
}

TENON_AVX512 inline __m256 HalfOf(__m512 x, bool is_high) {
  const __m512d pairs = _mm512_castps_pd(x);
  return _mm256_castpd_ps(is_high ? _mm512_maskz_extractf64x4_pd(kAll64, pairs, 1)
                                  : _mm512_maskz_extractf64x4_pd(kAll64, pairs, 0));
}

TENON_AVX512 inline float GreatestOf(__m512 x) {
  const __m256 eight = _mm256_max_ps(HalfOf(x, false), HalfOf(x, true));
  __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(four, _mm_movehdup_ps(four)));
}

// By which `most` stands for the greatest of n elements; NaN if there is one.
TENON_AVX512 inline float ScaleOfBlock(const float* x, size_t n, int most) {
  __m512 greatest = _mm512_setzero_ps();
  unsigned nans = 0;
  for (size_t i = 0; i < n; i += 16) {
    const __m512 some = LoadFirst(x + i, n - i);
    nans |= _mm512_cmp_ps_mask(some, some, _CMP_UNORD_Q);
    greatest = _mm512_maskz_max_ps(kAll32, greatest, _mm512_abs_ps(some));
  }
  return nans != 0 ? NAN : GreatestOf(greatest) / static_cast<float>(most);
}

// Writes the `n` elements of a block, and zeros up to the next multiple of 16, as bytes. Returns
// their scale.
TENON_AVX512 inline float RoundBlock(const float* x, size_t n, int8_t* bytes) {
  const float scale = ScaleOfBlock(x, n, 127);
  const __m512 inverse = _mm512_set1_ps(scale > 0 ? 1 / scale : 0);
  for (size_t i = 0; i < n; i += 16) {
    const __m512i rounded =
        _mm512_maskz_cvtps_epi32(kAll32, _mm512_mul_ps(LoadFirst(x + i, n - i), inverse));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + i),
                     _mm512_maskz_cvtsepi32_epi8(kAll32, rounded));
  }
  return scale;
}

// The same in two parts, or three: first the upper bytes, then lower ones without a sign of 8 bits,
// or twice 7. The bytes of a part are `stride` after those of the one before.
TENON_AVX512 inline float RoundBlockInParts(const float* x, size_t n, size_t parts, uint8_t* bytes,
                                            size_t stride) {
  const unsigned bits = parts == 2 ? 8 : 7;
  const size_t lower = parts - 1;
  const float scale = ScaleOfBlock(x, n, (1 << (7 + bits * lower)) - 1);
  const __m512 inverse = _mm512_set1_ps(scale > 0 ? 1 / scale : 0);
  const __m512i mask = _mm512_set1_epi32((1 << bits) - 1);
  for (size_t i = 0; i < n; i += 16) {
    __m512i rest =
        _mm512_maskz_cvtps_epi32(kAll32, _mm512_mul_ps(LoadFirst(x + i, n - i), inverse));
    for (size_t part = lower; part > 0; --part) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + part * stride + i),
                       _mm512_maskz_cvtepi32_epi8(kAll32, _mm512_and_si512(rest, mask)));
      rest = _mm512_maskz_srai_epi32(kAll32, rest, bits);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + i),
                     _mm512_maskz_cvtepi32_epi8(kAll32, rest));
  }
  return scale;
}

#undef TENON_AVX512

}  // namespace tenon::kernels
