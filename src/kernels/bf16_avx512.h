// Rounding to bfloat16 with AVX512-BF16; only for files that use these instructions.
#pragma once

#include <immintrin.h>

#include <cstdint>

#define TENON_BF16 __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))

namespace tenon::kernels {

// Two vectors of floats as bfloat16 numbers, rounded to nearest, ties to even: those of `low`
// first.
TENON_BF16 inline __m512i RoundToBf16(__m512 low, __m512 high) {
  return reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(high, low));
}

// The numbers of both halves next to each other: number i of the low half, then that of the high.
TENON_BF16 inline __m512i NextToEachOther(__m512i halves) {
  alignas(64) static constexpr uint16_t kPairs[32] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                      21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                      11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  // GCC 12 warns that the intrinsic without a mask reads something uninitialised.
  return _mm512_maskz_permutexvar_epi16(~__mmask32{0}, _mm512_load_si512(kPairs), halves);
}

}  // namespace tenon::kernels
