// Exact products of bytes with AVX2, whose instruction for them adds up two in 16 bits, which
// saturate. If the signed weights of a pair of neighbours add up to more than 128, part of one
// moves to a second vector of weights, the rest of the first, so that neither can saturate:
//
//   sum over k of a[k] * w[k] = sum of a[k] * packed[k] + sum over the rests of a[k] * rest[k]
//
// Packed weights are in quads, of 8 columns in a vector: [quads][8][4]. With too many rests,
// products of words are faster: the weights stay whole, and the first pair of a quad of all columns
// comes before the second ones.
#pragma once

#include <immintrin.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

#define TENON_AVX2 __attribute__((target("avx2,fma")))

namespace tenon::kernels {

inline constexpr size_t kRestColumns = 8;
inline constexpr size_t kRestVector = 4 * kRestColumns;  // bytes

// The rests of 8 columns of weights. What the memory holds is not trusted, as it may come from a
// file.
class Rests {
 public:
  // For so many quads of weights; a multiple of 64.
  static constexpr size_t Bytes(size_t quads) {
    return IndexBytes(quads) + (Most(quads) * kRestVector + 63) / 64 * 64;
  }

  Rests(const std::byte* memory, size_t quads)
      : header_(reinterpret_cast<uint32_t*>(const_cast<std::byte*>(memory))),
        vectors_(reinterpret_cast<int8_t*>(header_) + IndexBytes(quads)),
        quads_(quads) {}

  // The packed weights are whole: there are no rests, but pairs may saturate.
  bool are_too_many() const { return header_[0] == kTooMany; }
  size_t count() const { return are_too_many() ? 0 : std::min<size_t>(header_[0], Most(quads_)); }
  // The quad that rest i belongs to, and its weights.
  size_t quad(size_t i) const { return std::min<size_t>(header_[1 + i], quads_ - 1); }
  const int8_t* weights(size_t i) const { return vectors_ + i * kRestVector; }

  void Clear() const { header_[0] = 0; }
  // Writes the next quad's weights to packed[quad * distance], the rest of them to the rests.
  TENON_AVX2 void Pack(__m256i weights, size_t quad, int8_t* packed, size_t distance) const {
    auto* const into = reinterpret_cast<__m256i*>(packed + quad * distance);
    _mm256_storeu_si256(into, weights);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_set1_epi8(1), weights);
    const __m256i large =
        _mm256_cmpgt_epi16(_mm256_abs_epi16(pairs), _mm256_set1_epi16(kMostOfPair));
    if (!are_too_many() && !_mm256_testz_si256(large, large)) Split(quad, packed, distance);
  }

  // Makes the packed weights whole again.
  void GiveUp(int8_t* packed, size_t distance) const {
    for (size_t i = 0; i < count(); ++i) {
      int8_t* const whole = packed + quad(i) * distance;
      for (size_t j = 0; j < kRestVector; ++j) {
        whole[j] = static_cast<int8_t>(whole[j] + weights(i)[j]);
      }
    }
    header_[0] = kTooMany;
  }

 private:
  static constexpr uint32_t kTooMany = ~uint32_t{0};
  static constexpr int kMostOfPair = 128;  // times 255 is below 2^15

  // Products of words take 1.2 times the time; fewer rests save memory.
  static constexpr size_t Most(size_t quads) { return (quads + 7) / 8; }
  static constexpr size_t IndexBytes(size_t quads) {
    return ((1 + Most(quads)) * sizeof(uint32_t) + 63) / 64 * 64;
  }

  void Split(size_t quad, int8_t* packed, size_t distance) const {
    const size_t i = count();
    if (i == Most(quads_)) return GiveUp(packed, distance);
    int8_t* const weights = packed + quad * distance;
    int8_t* const rest = vectors_ + i * kRestVector;
    std::fill_n(rest, kRestVector, int8_t{0});
    for (size_t j = 0; j < kRestVector; j += 2) {
      const int sum = weights[j] + weights[j + 1];
      if (std::abs(sum) <= kMostOfPair) continue;
      const size_t larger = std::abs(weights[j]) >= std::abs(weights[j + 1]) ? j : j + 1;
      const int excess = sum > 0 ? sum - kMostOfPair : sum + kMostOfPair;
      weights[larger] = static_cast<int8_t>(weights[larger] - excess);
      rest[larger] = static_cast<int8_t>(excess);
    }
    header_[1 + i] = static_cast<uint32_t>(quad);
    header_[0] = static_cast<uint32_t>(i + 1);
  }

  uint32_t* const header_;  // the number of rests, then the quads
  int8_t* const vectors_;
  const size_t quads_;
};

// sum + the products of a quad of bytes in each lane with signed weights, of which no pair
// saturates.
TENON_AVX2 inline __m256i AddQuads(__m256i sum, __m256i bytes, __m256i weights) {
  const __m256i pairs = _mm256_maddubs_epi16(bytes, weights);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

TENON_AVX2 inline __m256i LoadVector(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
TENON_AVX2 inline __m256i BroadcastQuad(const void* from) {
  int32_t quad;
  std::memcpy(&quad, from, sizeof(quad));
  return _mm256_set1_epi32(quad);
}

TENON_AVX2 inline __m256i WordsAt(const void* signed_bytes) {
  return _mm256_cvtepi8_epi16(_mm_loadu_si128(static_cast<const __m128i*>(signed_bytes)));
}

TENON_AVX2 inline void WidenBytes(const uint8_t* from, size_t count, int16_t* to) {
  size_t i = 0;
  for (; i + 16 <= count; i += 16) {
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to + i), _mm256_cvtepu8_epi16(bytes));
  }
  for (; i < count; ++i) to[i] = from[i];
}

// The first pairs of the 8 quads, then the second ones.
TENON_AVX2 inline __m256i FirstThenSecond(__m256i quads) {
  const __m256i order = _mm256_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15,  //
                                         0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15);
  return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(quads, order), 0xd8);
}

// [quads][columns][4] becomes [pairs][columns][2].
TENON_AVX2 inline void JoinPairs(int8_t* quads, size_t count, size_t vectors) {
  for (size_t i = 0; i < count; ++i) {
    auto* const at = reinterpret_cast<__m256i*>(quads) + i * vectors;
    const __m256i low = FirstThenSecond(LoadVector(at));
    if (vectors == 1) {
      _mm256_storeu_si256(at, low);
      continue;
    }
    const __m256i high = FirstThenSecond(LoadVector(at + 1));
    _mm256_storeu_si256(at, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(at + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
}

}  // namespace tenon::kernels
