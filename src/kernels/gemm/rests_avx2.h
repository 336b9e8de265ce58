// Exact products of bytes with AVX2, whose instruction for them adds up two in 16 bits, which
// saturate. If signed weights of neighbours that are added up there are too large, a part of some
// moves to a second vector of weights, the rest of the first, so that no sum saturates:
//
//   sum over k of a[k] * w[k] = sum of a[k] * packed[k] + sum over the rests of a[k] * rest[k]
//
// Packed weights are in quads, of 8 columns in a vector: [quads][8][4]. A quad's products are two
// sums of 16 bits, which another instruction adds up in 32 bits. Where there are few rests even so,
// the sums of two quads, a pair, are added up in 16 bits first: six instructions become five, and
// of the four that multiply three are left. With too many rests, products of words are faster: the
// weights stay whole, and the first pair of weights of a quad of all columns comes before the
// second ones.
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

  // The packed weights are whole: there are no rests, but sums may saturate.
  bool are_too_many() const { return header_[1] != kQuads && header_[1] != kPairs; }
  // Quads 2 i and 2 i + 1 may be added up in 16 bits.
  bool allow_pairs() const { return header_[1] == kPairs; }
  size_t count() const { return are_too_many() ? 0 : std::min<size_t>(header_[0], Most(quads_)); }
  // The quad that rest i belongs to, and its weights.
  size_t quad(size_t i) const { return std::min<size_t>(header_[kHeader + i], quads_ - 1); }
  const int8_t* weights(size_t i) const { return vectors_ + i * kRestVector; }

  // Brings packed weights, which are whole, to the form that suits them; those of quad q are at
  // packed + q * distance. Without may_split, which takes time, weights that need rests stay whole.
  TENON_AVX2 [[gnu::noinline]] void Fit(int8_t* packed, size_t distance, bool may_split) const {
    const size_t most = may_split ? Most(quads_) : 0;
    const size_t most_of_pairs = may_split ? MostOfPairs(quads_) : 0;
    size_t large_quads = 0, large_pairs = 0;
    for (size_t q = 0; q < quads_ && (large_quads <= most || large_pairs <= most_of_pairs);
         q += 2) {
      Sums sums = SumsOf(packed + q * distance);
      large_quads += AreLarge(sums);
      if (q + 1 < quads_) {
        const Sums next = SumsOf(packed + (q + 1) * distance);
        large_quads += AreLarge(next);
        sums = Both(sums, next);
      }
      large_pairs += AreLarge(sums);
    }
    if (large_pairs <= most_of_pairs && Split(kPairs, packed, distance)) return;
    if (large_quads <= most && Split(kQuads, packed, distance)) return;
    Begin(kWhole);
  }

  // Makes the packed weights whole again.
  void GiveUp(int8_t* packed, size_t distance) const {
    for (size_t i = 0; i < count(); ++i) Return(quad(i), weights(i), packed, distance);
    Begin(kWhole);
  }

 private:
  enum Form : uint32_t { kWhole, kQuads, kPairs };
  static constexpr size_t kHeader = 2;    // how many there are, and the form; then the quads
  static constexpr int kMostOfSum = 128;  // times 255 is below 2^15
  static constexpr int kSigns[] = {1, -1};

  // Products of words take 1.2 times the time; fewer rests save memory.
  static constexpr size_t Most(size_t quads) { return (quads + 7) / 8; }
  // Pairs save a fifth of the time of several rows, but one row takes as long as reading all of it.
  static constexpr size_t MostOfPairs(size_t quads) { return (quads + 15) / 16; }
  static constexpr size_t IndexBytes(size_t quads) {
    return ((kHeader + Most(quads)) * sizeof(uint32_t) + 63) / 64 * 64;
  }

  void Begin(Form form) const {
    header_[0] = 0;
    header_[1] = form;
  }

  // Of the positive and of the negative weights of each half of a quad, in each lane.
  struct Sums {
    __m256i positive, negative;
  };
  TENON_AVX2 static Sums SumsOf(const int8_t* quad) {
    const __m256i ones = _mm256_set1_epi8(1), zero = _mm256_setzero_si256();
    const __m256i weights = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(quad));
    return {_mm256_maddubs_epi16(ones, _mm256_max_epi8(weights, zero)),
            _mm256_maddubs_epi16(ones, _mm256_min_epi8(weights, zero))};
  }
  TENON_AVX2 static Sums Both(const Sums& a, const Sums& b) {
    return {_mm256_add_epi16(a.positive, b.positive), _mm256_add_epi16(a.negative, b.negative)};
  }
  TENON_AVX2 static bool AreLarge(const Sums& sums) {
    const __m256i large =
        _mm256_or_si256(_mm256_cmpgt_epi16(sums.positive, _mm256_set1_epi16(kMostOfSum)),
                        _mm256_cmpgt_epi16(_mm256_set1_epi16(-kMostOfSum), sums.negative));
    return !_mm256_testz_si256(large, large);
  }

  // Whether the sums of one or two quads may saturate.
  TENON_AVX2 static bool AreLarge(const int8_t* first, size_t quads, size_t distance) {
    Sums sums = SumsOf(first);
    if (quads == 2) sums = Both(sums, SumsOf(first + distance));
    return AreLarge(sums);
  }

  // Moves all that is too large for the form to rests; changes nothing if these are too many.
  [[gnu::noinline]] bool Split(Form form, int8_t* packed, size_t distance) const {
    Begin(form);
    const size_t step = form == kPairs ? 2 : 1;
    for (size_t q = 0; q < quads_; q += step) {
      const size_t count = std::min(step, quads_ - q);
      while (AreLarge(packed + q * distance, count, distance)) {
        if (MoveExcess(q, count, packed, distance)) continue;
        GiveUp(packed, distance);
        return false;
      }
    }
    return true;
  }

  // The sum of the weights of one sign, as a positive number, at bytes j and j + 1 of a quad.
  static int SumOf(const int8_t* quad, size_t j, int sign) {
    return std::max(0, sign * quad[j]) + std::max(0, sign * quad[j + 1]);
  }

  // Moves what is too large in a quad, or in a pair from `first` on, to a rest of it; of a pair,
  // from one of its quads if that is enough. Some may be left. False if there is no room.
  bool MoveExcess(size_t first, size_t quads, int8_t* packed, size_t distance) const {
    int8_t* const at[] = {packed + first * distance, packed + (first + quads - 1) * distance};
    int excess[2][kRestVector] = {};  // of a sign, at even bytes
    bool is_enough[] = {true, true};
    for (size_t sign = 0; sign < 2; ++sign) {
      for (size_t j = 0; j < kRestVector; j += 2) {
        const int sums[] = {SumOf(at[0], j, kSigns[sign]),
                            quads == 2 ? SumOf(at[1], j, kSigns[sign]) : 0};
        excess[sign][j] = std::max(0, sums[0] + sums[1] - kMostOfSum);
        for (size_t q = 0; q < 2; ++q) is_enough[q] = is_enough[q] && excess[sign][j] <= sums[q];
      }
    }
    const bool is_first = is_enough[0] || !is_enough[1];
    if (is_first && !MoveFrom(first, at[0], excess)) return false;
    return is_enough[0] || quads == 1 || MoveFrom(first + 1, at[1], excess);
  }

  // Moves as much of the excess as a rest takes whose own sums fit; nothing if there is no room.
  bool MoveFrom(size_t quad, int8_t* weights, int (&excess)[2][kRestVector]) const {
    const size_t i = count();
    if (i == Most(quads_)) return false;
    int8_t* const rest = vectors_ + i * kRestVector;
    std::fill_n(rest, kRestVector, int8_t{0});
    for (size_t sign = 0; sign < 2; ++sign) {
      for (size_t j = 0; j < kRestVector; ++j) {
        int& left = excess[sign][j / 2 * 2];
        const int room = kMostOfSum - 1 - (j % 2 == 1 ? std::abs(int{rest[j - 1]}) : 0);
        const int moved = std::min({left, room, std::max(0, kSigns[sign] * weights[j])});
        weights[j] = static_cast<int8_t>(weights[j] - kSigns[sign] * moved);
        rest[j] = static_cast<int8_t>(rest[j] + kSigns[sign] * moved);
        left -= moved;
      }
    }
    header_[kHeader + i] = static_cast<uint32_t>(quad);
    header_[0] = static_cast<uint32_t>(i + 1);
    return true;
  }

  static void Return(size_t quad, const int8_t* weights, int8_t* packed, size_t distance) {
    int8_t* const whole = packed + quad * distance;
    for (size_t j = 0; j < kRestVector; ++j) whole[j] = static_cast<int8_t>(whole[j] + weights[j]);
  }

  uint32_t* const header_;
  int8_t* const vectors_;
  const size_t quads_;
};

TENON_AVX2 inline __m256i LoadVector(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
// sum + the products of a quad of bytes in each lane with signed weights, of which no pair
// saturates.
TENON_AVX2 inline __m256i AddQuads(__m256i sum, __m256i bytes, __m256i weights) {
  const __m256i pairs = _mm256_maddubs_epi16(bytes, weights);
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

// The same for two quads of bytes whose sums of four do not saturate either.
TENON_AVX2 inline __m256i AddTwoQuads(__m256i sum, __m256i first, __m256i first_weights,
                                      __m256i second, __m256i second_weights) {
  const __m256i pairs = _mm256_add_epi16(_mm256_maddubs_epi16(first, first_weights),
                                         _mm256_maddubs_epi16(second, second_weights));
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
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

// Brings a panel of one or two vectors, [quads][vectors][kRestVector], to the form that suits it;
// their rests follow each other. If one is whole, all are, and their pairs are joined.
inline void FitPanel(int8_t* packed, size_t quads, size_t vectors, const std::byte* all_rests,
                     bool may_split) {
  const Rests rests[] = {{all_rests, quads},
                         {all_rests + (vectors - 1) * Rests::Bytes(quads), quads}};
  const size_t distance = vectors * kRestVector;
  for (size_t v = 0; v < vectors; ++v) {
    rests[v].Fit(packed + v * kRestVector, distance, may_split);
  }
  if (!rests[0].are_too_many() && !rests[vectors - 1].are_too_many()) return;
  for (size_t v = 0; v < vectors; ++v) rests[v].GiveUp(packed + v * kRestVector, distance);
  JoinPairs(packed, quads, vectors);
}

}  // namespace tenon::kernels
