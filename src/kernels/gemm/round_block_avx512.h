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

// The float whose bits, as an integer, are the greatest.
TENON_AVX512 inline float GreatestOf(__m512i x) {
  const __m256i eight = _mm256_max_epi32(_mm512_maskz_extracti64x4_epi64(kAll64, x, 0),
                                         _mm512_maskz_extracti64x4_epi64(kAll64, x, 1));
  __m128i four = _mm_max_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 1));
  return _mm_cvtss_f32(_mm_castsi128_ps(four));
}

// By which `most` stands for the greatest of n elements; NaN if there is one, whose bits are
// greater than those of any number.
TENON_AVX512 inline float ScaleOfBlock(const float* x, size_t n, int most) {
  const __m512i magnitude = _mm512_set1_epi32(0x7fffffff);
  __m512i greatest = _mm512_setzero_si512();
  for (size_t i = 0; i < n; i += 16) {
    const __m512i bits = _mm512_castps_si512(LoadFirst(x + i, n - i));
    greatest = _mm512_maskz_max_epi32(kAll32, greatest, _mm512_and_si512(bits, magnitude));
  }
  return GreatestOf(greatest) / static_cast<float>(most);
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

#undef TENON_AVX512

}  // namespace tenon::kernels
