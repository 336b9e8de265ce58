// A transposition in registers; only for files that use AVX-512.
#pragma once

#include <immintrin.h>

#include <cstddef>

#define TENON_AVX512 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq")))

namespace tenon::kernels {

// Transposes a matrix of 16 x 16 numbers of 32 bits.
TENON_AVX512 inline void TransposeLanes(__m512i (&rows)[16]) {
  // GCC 12 warns that the intrinsics without a mask read something uninitialised.
  constexpr __mmask16 kAll = 0xffff;
  constexpr __mmask8 kAllPairs = 0xff;
  __m512i pairs[16];
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; i += 2) {
    pairs[i] = _mm512_maskz_unpacklo_epi32(kAll, rows[i], rows[i + 1]);
    pairs[i + 1] = _mm512_maskz_unpackhi_epi32(kAll, rows[i], rows[i + 1]);
  }
  __m512i fours[16];  // column 4 l + j % 4 of rows j / 4 * 4 on, in the 128 bits l
#pragma GCC unroll 16
  for (size_t i = 0; i < 16; i += 4) {
    fours[i] = _mm512_maskz_unpacklo_epi64(kAllPairs, pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm512_maskz_unpackhi_epi64(kAllPairs, pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm512_maskz_unpacklo_epi64(kAllPairs, pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm512_maskz_unpackhi_epi64(kAllPairs, pairs[i + 1], pairs[i + 3]);
  }
#pragma GCC unroll 4
  for (size_t j = 0; j < 4; ++j) {
    const __m512i low01 = _mm512_maskz_shuffle_i32x4(kAll, fours[j], fours[4 + j], 0x44);
    const __m512i high01 = _mm512_maskz_shuffle_i32x4(kAll, fours[j], fours[4 + j], 0xee);
    const __m512i low23 = _mm512_maskz_shuffle_i32x4(kAll, fours[8 + j], fours[12 + j], 0x44);
    const __m512i high23 = _mm512_maskz_shuffle_i32x4(kAll, fours[8 + j], fours[12 + j], 0xee);
    rows[j] = _mm512_maskz_shuffle_i32x4(kAll, low01, low23, 0x88);
    rows[4 + j] = _mm512_maskz_shuffle_i32x4(kAll, low01, low23, 0xdd);
    rows[8 + j] = _mm512_maskz_shuffle_i32x4(kAll, high01, high23, 0x88);
    rows[12 + j] = _mm512_maskz_shuffle_i32x4(kAll, high01, high23, 0xdd);
  }
}

}  // namespace tenon::kernels
