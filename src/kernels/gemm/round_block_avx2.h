// Rounds blocks of floats to parts of 8 bits, to the same bits as round_block_avx512.h. Included
// where AVX2 is checked by the caller.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

#define TENON_AVX2 __attribute__((target("avx2,fma")))

TENON_AVX2 inline __m256i Load256(const void* bytes) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(bytes));
}
TENON_AVX2 inline void Store256(__m256i x, void* bytes) {
  _mm256_storeu_si256(static_cast<__m256i*>(bytes), x);
}

// The first n floats of 16, and zeros.
struct Floats16 {
  __m256 low, high;

  TENON_AVX2 Floats16(const float* x, size_t n) : low(First(x, n)), high(_mm256_setzero_ps()) {
    if (n > 8) high = First(x + 8, n - 8);
  }
  // n > 0.
  TENON_AVX2 static __m256 First(const float* x, size_t n) {
    if (n >= 8) return _mm256_loadu_ps(x);
    const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_maskload_ps(x, _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(n)), lanes));
  }
};

// 16 integers of 32 bits.
struct Ints16 {
  __m256i low, high;

  TENON_AVX2 static Ints16 Rounded(const Floats16& x, __m256 factor) {
    return {_mm256_cvtps_epi32(_mm256_mul_ps(x.low, factor)),
            _mm256_cvtps_epi32(_mm256_mul_ps(x.high, factor))};
  }
  template <int kBits>
  TENON_AVX2 Ints16 ShiftedRight() const {
    return {_mm256_srai_epi32(low, kBits), _mm256_srai_epi32(high, kBits)};
  }
  template <int kBits>
  TENON_AVX2 Ints16 ShiftedLeft() const {
    return {_mm256_slli_epi32(low, kBits), _mm256_slli_epi32(high, kBits)};
  }
  TENON_AVX2 Ints16 operator+(int term) const {
    const __m256i terms = _mm256_set1_epi32(term);
    return {_mm256_add_epi32(low, terms), _mm256_add_epi32(high, terms)};
  }
  TENON_AVX2 Ints16 operator&(int mask) const {
    const __m256i masks = _mm256_set1_epi32(mask);
    return {_mm256_and_si256(low, masks), _mm256_and_si256(high, masks)};
  }
  TENON_AVX2 Ints16 operator-(const Ints16& other) const {
    return {_mm256_sub_epi32(low, other.low), _mm256_sub_epi32(high, other.high)};
  }
  // As saturated bytes.
  TENON_AVX2 void StoreSigned(int8_t* bytes) const {
    Store(_mm_packs_epi16(Words(low), Words(high)), bytes);
  }
  // Numbers in [0, 255].
  TENON_AVX2 void StoreUnsigned(int8_t* bytes) const {
    Store(_mm_packus_epi16(Words(low), Words(high)), bytes);
  }

 private:
  TENON_AVX2 static __m128i Words(__m256i x) {
    return _mm_packs_epi32(_mm256_castsi256_si128(x), _mm256_extracti128_si256(x, 1));
  }
  TENON_AVX2 static void Store(__m128i x, int8_t* bytes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes), x);
  }
};

// By which `most` stands for the greatest of n elements; NaN if there is one, whose bits are
// greater than those of any number.
TENON_AVX2 inline float ScaleOfBlock(const float* x, size_t n, int most) {
  const __m256i magnitude = _mm256_set1_epi32(0x7fffffff);
  __m256i greatest = _mm256_setzero_si256();
  for (size_t i = 0; i < n; i += 16) {
    const Floats16 some(x + i, n - i);
    const __m256i low = _mm256_and_si256(_mm256_castps_si256(some.low), magnitude);
    const __m256i high = _mm256_and_si256(_mm256_castps_si256(some.high), magnitude);
    greatest = _mm256_max_epi32(greatest, _mm256_max_epi32(low, high));
  }
  __m128i four =
      _mm_max_epi32(_mm256_castsi256_si128(greatest), _mm256_extracti128_si256(greatest, 1));
  four = _mm_max_epi32(four, _mm_unpackhi_epi64(four, four));
  four = _mm_max_epi32(four, _mm_shuffle_epi32(four, 1));
  return _mm_cvtss_f32(_mm_castsi128_ps(four)) / static_cast<float>(most);
}

// Writes the `n` elements of a block, and zeros up to the next multiple of 16, as bytes. Returns
// their scale.
TENON_AVX2 inline float RoundBlock(const float* x, size_t n, int8_t* bytes) {
  const float scale = ScaleOfBlock(x, n, 127);
  const __m256 inverse = _mm256_set1_ps(scale > 0 ? 1 / scale : 0);
  for (size_t i = 0; i < n; i += 16) {
    Ints16::Rounded(Floats16(x + i, n - i), inverse).StoreSigned(bytes + i);
  }
  return scale;
}

#undef TENON_AVX2

}  // namespace tenon::kernels
