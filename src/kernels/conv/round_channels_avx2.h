// From sums of bytes' products to bytes, 16 channels of a pixel at a time, with AVX2. Only for the
// files conv_int8_nhwc*.cpp.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/gemm/rests_avx2.h"

namespace tenon::kernels {

inline constexpr size_t kChannelLanes = 8;
inline constexpr size_t kChannelPanel = 2 * kChannelLanes;

TENON_AVX2 inline __m256i LoadInts(const int32_t* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
// saturate(round(sum * scale) + zero_point), ties to even, for rows of 16 channels.
struct Rounding {
  __m256 low_scale, high_scale;
  __m256i zero_point;  // words
  bool is_signed;
};

TENON_AVX2 inline Rounding MakeRounding(const float* scales, int32_t zero_point, bool is_signed) {
  return {_mm256_loadu_ps(scales), _mm256_loadu_ps(scales + kChannelLanes),
          _mm256_set1_epi16(static_cast<int16_t>(zero_point)), is_signed};
}

// Words. Scaled sums that do not fit in 32 bits become the greatest of their sign, if kAreLarge.
template <bool kAreLarge>
TENON_AVX2 inline __m256i RoundRow(__m256i low, __m256i high, const Rounding& rounding) {
  __m256 scaled[] = {_mm256_mul_ps(_mm256_cvtepi32_ps(low), rounding.low_scale),
                     _mm256_mul_ps(_mm256_cvtepi32_ps(high), rounding.high_scale)};
  if constexpr (kAreLarge) {  // those that are less become the least integer
    for (__m256& some : scaled) some = _mm256_min_ps(_mm256_set1_ps(65536), some);
  }
  const __m256i words =
      _mm256_packs_epi32(_mm256_cvtps_epi32(scaled[0]), _mm256_cvtps_epi32(scaled[1]));
  return _mm256_adds_epi16(words, rounding.zero_point);
}

// The bytes of two rows of words, one in each half.
TENON_AVX2 inline __m256i BytesOfRows(__m256i first, __m256i second, bool is_signed) {
  const __m256i bytes =
      is_signed ? _mm256_packs_epi16(first, second) : _mm256_packus_epi16(first, second);
  // Each 128 bits hold four elements of each of the four vectors.
  return _mm256_permutevar8x32_epi32(bytes, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}

TENON_AVX2 inline void StoreChannels(__m128i bytes, uint8_t* out, size_t count) {
  if (count == kChannelPanel) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), bytes);
    return;
  }
  uint8_t some[kChannelPanel];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(some), bytes);
  std::memcpy(out, some, count);
}

}  // namespace tenon::kernels
