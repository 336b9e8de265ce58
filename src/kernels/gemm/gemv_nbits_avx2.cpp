#if defined(__x86_64__)
#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/gemm/gemv_nbits_form.h"
#include "kernels/gemm/round_block_avx2.h"

namespace tenon::kernels {
namespace {

#define TENON_AVX2 __attribute__((target("avx2,fma")))

// In the order of the form with vectors of 16 lanes, so that the sum has the same bits.
TENON_AVX2 inline float SumOf(__m256 low, __m256 high) {
  const __m256 eight = _mm256_add_ps(low, high);
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// Writes the n elements of a block as bytes of three parts, `stride` bytes apart, so that the sum
// of the parts times 2^14, 2^7 and 1 is the rounded element, and returns the scale of that.
TENON_AVX2 float SplitBlock(const float* x, size_t n, int8_t* bytes, size_t stride) {
  constexpr int kBits = kNBitsPartBits;
  const float scale = ScaleOfBlock(x, n, 127 << 2 * kBits);
  const __m256 inverse = _mm256_set1_ps(scale > 0 ? 1 / scale : 0);
  for (size_t i = 0; i < n; i += 16, bytes += 16) {
    const Ints16 v = Ints16::Rounded(Floats16(x + i, n - i), inverse);
    const Ints16 first = (v + (1 << (2 * kBits - 1))).ShiftedRight<2 * kBits>();
    const Ints16 rest = v - first.ShiftedLeft<2 * kBits>();
    const Ints16 second = (rest + (1 << (kBits - 1))).ShiftedRight<kBits>();
    first.StoreSigned(bytes);
    second.StoreSigned(bytes + stride);
    (rest - second.ShiftedLeft<kBits>()).StoreSigned(bytes + 2 * stride);
  }
  return scale;
}

// A half of a unit: 32 bytes of the matrix, 8 sums.
constexpr size_t kHalfBytes = kNBitsUnitBytes / 2, kHalfSums = kNBitsUnitSums / 2;

// Sums of 16 bits are exact: an element and a byte make at most 15 * 128, and there are four.
TENON_AVX2 inline __m256i Dots(__m256i low, __m256i high, const int8_t* bytes) {
  return _mm256_add_epi16(_mm256_maddubs_epi16(low, Load256(bytes)),
                          _mm256_maddubs_epi16(high, Load256(bytes + kNBitsUnitBytes)));
}

// The elements of a half of a row, in the order of the vectors of sums.
struct HalfOfRow {
  __m256i low, high;
  __m256 scales;

  TENON_AVX2 HalfOfRow(__m256i packed, __m256 its_scales)
      : low(_mm256_and_si256(packed, _mm256_set1_epi8(15))),
        high(_mm256_and_si256(_mm256_srli_epi16(packed, 4), _mm256_set1_epi8(15))),
        scales(its_scales) {}

  // Adds the products with a vector's elements to `total`.
  template <NBitsParts kParts>
  TENON_AVX2 __m256 AddTo(__m256 total, const NBitsByteVector& x, size_t unit, size_t half) const {
    const int8_t* bytes = x.bytes + unit * kNBitsUnit + half * kHalfBytes;
    const size_t lanes = unit * kNBitsUnitSums + half * kHalfSums;
    constexpr auto kCount = static_cast<unsigned>(kParts);
    __m256i sums = Load256(x.starts + lanes);
#pragma GCC unroll 3
    for (unsigned part = 0; part < kCount; ++part) {
      const auto factor = static_cast<short>(1 << (kCount - 1 - part) * kNBitsPartBits);
      const __m256i dots = Dots(low, high, bytes + part * x.part_bytes);
      sums = _mm256_add_epi32(sums, _mm256_madd_epi16(dots, _mm256_set1_epi16(factor)));
    }
    const __m256 scaled = _mm256_mul_ps(_mm256_cvtepi32_ps(sums), scales);
    return _mm256_fmadd_ps(scaled, _mm256_loadu_ps(x.scales + lanes), total);
  }
};

// The scales of a half, each for the lanes of its block.
template <bool kHasOneScale>
TENON_AVX2 inline __m256 SpreadScales(const float* first) {
  if constexpr (kHasOneScale) return _mm256_set1_ps(LoadUnaligned(first));
  const __m256i order = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
  const __m256 pairs =
      _mm256_castpd_ps(_mm256_set1_pd(LoadUnaligned(reinterpret_cast<const double*>(first))));
  return _mm256_permutevar_ps(pairs, order);
}

// Adds the products of a row's last block, of 32 elements, if its half has no other one.
template <NBitsParts kParts>
[[gnu::noinline]] TENON_AVX2 void AddLastBlock(const NBitsMatrix& w, const NBitsByteVector& x,
                                               size_t row, __m256 (&sums)[2]) {
  const size_t blocks = w.blocks(), half = blocks / 2 % 2;
  const auto* at = reinterpret_cast<const __m128i*>(w.data) + (row + 1) * blocks - 1;
  const __m256i packed = _mm256_zextsi128_si256(_mm_loadu_si128(at));
  const HalfOfRow elements(packed, _mm256_set1_ps(w.Scale(row, blocks - 1)));
  sums[half] = elements.AddTo<kParts>(sums[half], x, blocks / 4, half);
}

// NBitsZeroPointSum, 8 blocks at once where the zero points are packed.
TENON_AVX2 float SumZeroPoints(const NBitsMatrix& w, const NBitsByteVector& x, size_t row) {
  if (w.zero_points == nullptr) return NBitsZeroPointSum(w, x, row);
  const __m256i shifts = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
  const uint8_t* const zeros = w.zero_points + row * w.zero_stride;
  const float* const scales = w.scales + row * w.blocks();
  __m256 sums = _mm256_setzero_ps();
  size_t b = 0;
  for (; b + 8 <= w.blocks(); b += 8) {
    int32_t eight;
    std::memcpy(&eight, zeros + b / 2, sizeof(eight));
    const __m256i shifted = _mm256_srlv_epi32(_mm256_set1_epi32(eight), shifts);
    const __m256 points = _mm256_cvtepi32_ps(_mm256_and_si256(shifted, _mm256_set1_epi32(15)));
    const __m256 scaled = _mm256_mul_ps(points, _mm256_loadu_ps(scales + b));
    sums = _mm256_fmadd_ps(scaled, _mm256_loadu_ps(x.sums + b), sums);
  }
  float sum = SumOf(sums, _mm256_setzero_ps());
  for (; b < w.blocks(); ++b) sum += w.ZeroPoint(row, b) * w.Scale(row, b) * x.sums[b];
  return sum;
}

// Rows of the matrix times vectors: y[v * stride + r]. kHasOneScale: a half has; else it has two.
template <NBitsParts kParts, size_t kRows, size_t kVectors, bool kHasOneScale>
TENON_AVX2 void RunRows(const NBitsMatrix& w, const NBitsByteVector* x, size_t row, float* y,
                        size_t stride) {
  const size_t blocks = w.blocks(), row_bytes = blocks * w.block_size / 2;
  const size_t ahead = std::max(kRows * row_bytes, kLeastNBitsAhead);
  const uint8_t* data = w.data + row * row_bytes;
  const float* scales = w.scales + row * blocks;
  const int scale_shift = std::countr_zero(w.block_size / 2);  // from bytes to blocks
  __m256 total[kRows][kVectors][2] = {};
  const auto add_half = [&](size_t unit, size_t half) TENON_AVX2 __attribute__((always_inline)) {
    const size_t first = unit * kNBitsUnitBytes + half * kHalfBytes;
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const uint8_t* at = data + r * row_bytes + first;
      if (half == 0) _mm_prefetch(at + ahead, _MM_HINT_T0);  // for the next rows
      const HalfOfRow elements(
          Load256(at), SpreadScales<kHasOneScale>(scales + r * blocks + (first >> scale_shift)));
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        total[r][v][half] = elements.AddTo<kParts>(total[r][v][half], x[v], unit, half);
      }
    }
  };
  const size_t whole = row_bytes / kNBitsUnitBytes, rest = row_bytes % kNBitsUnitBytes;
  for (size_t unit = 0; unit < whole; ++unit) {
    add_half(unit, 0);
    add_half(unit, 1);
  }
  if (rest >= kHalfBytes) add_half(whole, 0);
  __m256 sums[kRows][kVectors][2];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      sums[r][v][0] = total[r][v][0];
      sums[r][v][1] = total[r][v][1];
    }
  }
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) {
      if (rest % kHalfBytes > 0) AddLastBlock<kParts>(w, x[v], row + r, sums[r][v]);
      y[v * stride + r] = SumOf(sums[r][v][0], sums[r][v][1]);
    }
  }
  if (w.zero_points == nullptr && w.float_zero_points == nullptr) return;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) {
      y[v * stride + r] -= SumZeroPoints(w, x[v], row + r);
    }
  }
}

template <NBitsParts kParts, size_t kRows, size_t kVectors>
auto ChooseRows(const NBitsMatrix& w) {
  return w.block_size > kHalfBytes ? &RunRows<kParts, kRows, kVectors, true>
                                   : &RunRows<kParts, kRows, kVectors, false>;
}

#define TENON_NBITS_TARGET TENON_AVX2
#include "kernels/gemm/gemv_nbits_form-inl.h"
#undef TENON_NBITS_TARGET

TENON_AVX2 void Arrange(const NBitsMatrix& w, NBitsParts parts, const float* x,
                        const NBitsByteVector& v) {
  RoundBlocks(w, parts, x, v);
  const size_t count = static_cast<size_t>(parts);
  const __m256i even = _mm256_set1_epi16(255);
  for (int8_t* at = v.bytes; at < v.bytes + count * v.part_bytes; at += kNBitsUnit) {
    __m256i words[4];
    for (size_t i = 0; i < 4; ++i) words[i] = Load256(at + i * 32);
    const auto store = [&](__m256i first, __m256i second, size_t into) TENON_AVX2 {
      Store256(_mm256_permute4x64_epi64(_mm256_packus_epi16(first, second), 0xd8), at + into);
    };
    for (size_t half = 0; half < 2; ++half) {
      const __m256i first = words[2 * half], second = words[2 * half + 1];
      store(_mm256_and_si256(first, even), _mm256_and_si256(second, even), half * kHalfBytes);
      store(_mm256_srli_epi16(first, 8), _mm256_srli_epi16(second, 8),
            kNBitsUnitBytes + half * kHalfBytes);
    }
  }
  if (w.zero_points || w.float_zero_points) return;  // starts are 0
  const __m256i zero_point = _mm256_set1_epi8(8);
  for (size_t i = 0; i < 2 * NBitsUnits(w); ++i) {
    __m256i sums = _mm256_setzero_si256();
    for (size_t part = 0; part < count; ++part) {
      const int8_t* at = v.bytes + part * v.part_bytes + i / 2 * kNBitsUnit + i % 2 * kHalfBytes;
      const __m256i dots = Dots(zero_point, zero_point, at);
      sums = _mm256_add_epi32(_mm256_slli_epi32(sums, kNBitsPartBits),
                              _mm256_madd_epi16(dots, _mm256_set1_epi16(1)));
    }
    Store256(_mm256_sub_epi32(_mm256_setzero_si256(), sums), v.starts + i * kHalfSums);
  }
}

#undef TENON_AVX2

void Run(const NBitsMatrix& w, NBitsParts parts, const NBitsByteVector* x, size_t vectors,
         size_t first, size_t count, float* y, size_t stride) {
  if (parts == NBitsParts::kOne) {
    const auto run = vectors == 1 ? &RunVectors<NBitsParts::kOne, 4, 1>
                                  : &RunVectors<NBitsParts::kOne, 1, kMostNBitsVectors>;
    return run(w, x, first, count, y, stride);
  }
  for (size_t v = 0; v < vectors; ++v) {
    RunVectors<NBitsParts::kThree, 2, 1>(w, x + v, first, count, y + v * stride, stride);
  }
}

}  // namespace

const NBitsGemmForm kAvx2NBitsGemm = {5, 8, &Arrange, &Run};

}  // namespace tenon::kernels
#endif
