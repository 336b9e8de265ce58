// A transposition in registers; only for files that use AVX2.
#pragma once

#include <immintrin.h>

#include <cstddef>

namespace tenon::kernels {

// Transposes a matrix of 8 x 8 numbers of 32 bits.
__attribute__((target("avx2"))) inline void TransposeLanes(__m256i (&rows)[8]) {
  __m256i pairs[8], fours[8];
#pragma GCC unroll 8
  for (size_t i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_epi32(rows[i], rows[i + 1]);
    pairs[i + 1] = _mm256_unpackhi_epi32(rows[i], rows[i + 1]);
  }
#pragma GCC unroll 8
  for (size_t i = 0; i < 8; i += 4) {
    fours[i] = _mm256_unpacklo_epi64(pairs[i], pairs[i + 2]);
    fours[i + 1] = _mm256_unpackhi_epi64(pairs[i], pairs[i + 2]);
    fours[i + 2] = _mm256_unpacklo_epi64(pairs[i + 1], pairs[i + 3]);
    fours[i + 3] = _mm256_unpackhi_epi64(pairs[i + 1], pairs[i + 3]);
  }
#pragma GCC unroll 4
  for (size_t i = 0; i < 4; ++i) {
    rows[i] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x20);
    rows[i + 4] = _mm256_permute2x128_si256(fours[i], fours[i + 4], 0x31);
  }
}

}  // namespace tenon::kernels
