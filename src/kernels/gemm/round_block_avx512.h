// Rounds blocks of floats to 8 bits. Included where AVX-512 is known at compile time or checked by
// the caller.
#pragma once

#include <immintrin.h>

#include <algorithm>
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

// Writes the `n` elements of a block, and zeros up to the next multiple of 16, as bytes. Returns
// their scale, which is NaN if an element is.
TENON_AVX512 inline float RoundBlock(const float* x, size_t n, int8_t* bytes) {
  __m512 most = _mm512_setzero_ps();
  bool has_nan = false;
  for (size_t i = 0; i < n; i += 16) {
    const __m512 some = LoadFirst(x + i, n - i);
    has_nan |= _mm512_cmp_ps_mask(some, some, _CMP_UNORD_Q) != 0;
    most = _mm512_maskz_max_ps(kAll32, most, _mm512_abs_ps(some));
  }
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, most);
  const float scale = has_nan ? NAN : *std::max_element(lanes, lanes + 16) / 127;
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
