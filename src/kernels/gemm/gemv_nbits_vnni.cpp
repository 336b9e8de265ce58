#if defined(__x86_64__)
#include <algorithm>
#include <bit>

#include "kernels/gemm/gemv_nbits_form.h"
#include "kernels/gemm/round_block_avx512.h"

namespace tenon::kernels {
namespace {

#define TENON_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")))

TENON_VNNI inline __m256 HalfOf(__m512 x, bool is_high) {
  const __m512d pairs = _mm512_castps_pd(x);
  return _mm256_castpd_ps(is_high ? _mm512_maskz_extractf64x4_pd(kAll64, pairs, 1)
                                  : _mm512_maskz_extractf64x4_pd(kAll64, pairs, 0));
}

TENON_VNNI inline float SumOf(__m512 x) {
  const __m256 eight = _mm256_add_ps(HalfOf(x, false), HalfOf(x, true));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// The even ones of 64 elements, then the odd ones.
TENON_VNNI inline __m512i EvenThenOdd(__m512i bytes) {
  const __m512i even_odd_of_eight =
      _mm512_set_epi8(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0, 15, 13, 11, 9, 7, 5, 3,
                      1, 14, 12, 10, 8, 6, 4, 2, 0, 15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4,
                      2, 0, 15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  return _mm512_maskz_permutexvar_epi64(kAll64, order,
                                        _mm512_shuffle_epi8(bytes, even_odd_of_eight));
}

// Writes the n elements of a block as bytes of three parts, `stride` bytes apart, so that the sum
// of the parts times 2^14, 2^7 and 1 is the rounded element, and returns the scale of that.
TENON_VNNI float SplitBlock(const float* x, size_t n, int8_t* bytes, size_t stride) {
  const float scale = ScaleOfBlock(x, n, 127 << 2 * kNBitsPartBits);
  const __m512 inverse = _mm512_set1_ps(scale > 0 ? 1 / scale : 0);
  const auto rounded_shift = [](__m512i v, int bits) TENON_VNNI {
    return _mm512_maskz_srai_epi32(kAll32, _mm512_add_epi32(v, _mm512_set1_epi32(1 << (bits - 1))),
                                   bits);
  };
  const auto store = [](__m512i v, int8_t* into) TENON_VNNI {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(into), _mm512_maskz_cvtsepi32_epi8(kAll32, v));
  };
  for (size_t i = 0; i < n; i += 16, bytes += 16) {
    const __m512i v =
        _mm512_maskz_cvtps_epi32(kAll32, _mm512_mul_ps(LoadFirst(x + i, n - i), inverse));
    const __m512i first = rounded_shift(v, 2 * kNBitsPartBits);
    const __m512i rest =
        _mm512_sub_epi32(v, _mm512_maskz_slli_epi32(kAll32, first, 2 * kNBitsPartBits));
    const __m512i second = rounded_shift(rest, kNBitsPartBits);
    store(first, bytes);
    store(second, bytes + stride);
    store(_mm512_sub_epi32(rest, _mm512_maskz_slli_epi32(kAll32, second, kNBitsPartBits)),
          bytes + 2 * stride);
  }
  return scale;
}

// The scales of a unit, each for the lanes of its block.
struct ScaleSpread {
  __m512i order;
  size_t blocks;    // of a unit; 1 also if a block has several units
  int block_shift;  // log2 of the block size

  TENON_VNNI explicit ScaleSpread(const NBitsMatrix& w)
      : blocks(std::max<size_t>(1, kNBitsUnit / w.block_size)),
        block_shift(std::countr_zero(w.block_size)) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    order = blocks == 1   ? _mm512_setzero_si512()
            : blocks == 2 ? _mm512_maskz_srli_epi32(kAll32, lanes, 3)
                          : _mm512_maskz_srli_epi32(kAll32, lanes, 2);
  }

  // The position of a unit's first scale.
  size_t FirstOf(size_t unit) const { return unit * kNBitsUnit >> block_shift; }
  // Of a unit whose first scale is `first` of `count`.
  __mmask16 Present(size_t first, size_t count) const {
    return static_cast<__mmask16>((1u << std::min(blocks, count - first)) - 1);
  }
  TENON_VNNI __m512 Of(const float* first, __mmask16 present) const {
    return _mm512_maskz_permutexvar_ps(kAll32, order, _mm512_maskz_loadu_ps(present, first));
  }
};

// The elements of a unit of a row, in the order of the vectors of sums.
struct UnitOfRow {
  __m512i low, high;
  __m512 scales;

  TENON_VNNI UnitOfRow(__m512i packed, __m512 unit_scales)
      : low(_mm512_and_si512(packed, _mm512_set1_epi8(15))),
        high(_mm512_and_si512(_mm512_srli_epi16(packed, 4), _mm512_set1_epi8(15))),
        scales(unit_scales) {}

  // Adds the products with a part's bytes to `sums`.
  TENON_VNNI __m512i AddPart(__m512i sums, const int8_t* bytes) const {
    sums = _mm512_dpbusd_epi32(sums, low, _mm512_loadu_si512(bytes));
    return _mm512_dpbusd_epi32(sums, high, _mm512_loadu_si512(bytes + kNBitsUnitBytes));
  }

  // Adds the products with a vector's elements to `total`.
  template <NBitsParts kParts>
  TENON_VNNI __m512 AddTo(__m512 total, const NBitsByteVector& x, size_t unit) const {
    const int8_t* bytes = x.bytes + unit * kNBitsUnit;
    __m512i sums = _mm512_loadu_si512(x.starts + unit * kNBitsUnitSums);
    if constexpr (kParts == NBitsParts::kOne) {
      sums = AddPart(sums, bytes);
    } else {
      __m512i high = AddPart(_mm512_setzero_si512(), bytes);
      high = AddPart(_mm512_maskz_slli_epi32(kAll32, high, kNBitsPartBits), bytes + x.part_bytes);
      sums = AddPart(sums, bytes + 2 * x.part_bytes);
      sums = _mm512_add_epi32(sums, _mm512_maskz_slli_epi32(kAll32, high, kNBitsPartBits));
    }
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll32, sums), scales);
    return _mm512_fmadd_ps(scaled, _mm512_loadu_ps(x.scales + unit * kNBitsUnitSums), total);
  }
};

// Rows of the matrix times vectors: y[v * stride + r]. kHasOneScale: a unit has; without it, it
// may.
template <NBitsParts kParts, size_t kRows, size_t kVectors, bool kHasOneScale>
TENON_VNNI void RunRows(const NBitsMatrix& w, const NBitsByteVector* x, size_t row, float* y,
                        size_t stride) {
  const size_t blocks = w.blocks(), row_bytes = blocks * w.block_size / 2;
  const size_t ahead = std::max(kRows * row_bytes, kLeastNBitsAhead);
  const uint8_t* data = w.data + row * row_bytes;
  const float* scales = w.scales + row * blocks;
  const ScaleSpread spread(w);
  __m512 total[kRows][kVectors];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) total[r][v] = _mm512_setzero_ps();
  }
  const auto add_unit = [&](size_t unit, uint64_t bytes_there, __mmask16 scales_there) TENON_VNNI
      __attribute__((always_inline)) {
    const size_t first = spread.FirstOf(unit);
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const uint8_t* at = data + r * row_bytes + unit * kNBitsUnitBytes;
      _mm_prefetch(at + ahead, _MM_HINT_T0);  // for the next rows
      const float* of_unit = scales + r * blocks + first;
      const UnitOfRow elements(
          _mm512_maskz_loadu_epi8(bytes_there, at),
          kHasOneScale ? _mm512_set1_ps(LoadUnaligned(of_unit)) : spread.Of(of_unit, scales_there));
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        total[r][v] = elements.AddTo<kParts>(total[r][v], x[v], unit);
      }
    }
  };
  const size_t whole = row_bytes / kNBitsUnitBytes, rest = row_bytes % kNBitsUnitBytes;
  const __mmask16 all_scales = spread.Present(0, spread.blocks);
  for (size_t unit = 0; unit < whole; ++unit) add_unit(unit, ~uint64_t{0}, all_scales);
  if (rest > 0) {
    add_unit(whole, (uint64_t{1} << rest) - 1, spread.Present(spread.FirstOf(whole), blocks));
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      y[v * stride + r] = SumOf(total[r][v]);
    }
  }
  if (w.zero_points == nullptr && w.float_zero_points == nullptr) return;
  for (size_t r = 0; r < kRows; ++r) {
    for (size_t v = 0; v < kVectors; ++v) {
      y[v * stride + r] -= NBitsZeroPointSum(w, x[v], row + r);
    }
  }
}

template <NBitsParts kParts, size_t kRows, size_t kVectors>
auto ChooseRows(const NBitsMatrix& w) {
  // A form of its own pays where nothing else is done with a scale.
  constexpr bool kPays = kRows > 1 && kVectors == 1;
  return kPays && w.block_size >= kNBitsUnit ? &RunRows<kParts, kRows, kVectors, kPays>
                                             : &RunRows<kParts, kRows, kVectors, false>;
}

#define TENON_NBITS_TARGET TENON_VNNI
#include "kernels/gemm/gemv_nbits_form-inl.h"
#undef TENON_NBITS_TARGET

TENON_VNNI void ArrangeBytes(const NBitsMatrix& w, NBitsParts parts, const float* x,
                             const NBitsByteVector& v) {
  RoundBlocks(w, parts, x, v);
  const size_t count = static_cast<size_t>(parts);
  for (int8_t* at = v.bytes; at < v.bytes + count * v.part_bytes; at += kNBitsUnit) {
    const __m512i first = EvenThenOdd(_mm512_loadu_si512(at));
    const __m512i second = EvenThenOdd(_mm512_loadu_si512(at + 64));
    _mm512_storeu_si512(at, _mm512_maskz_shuffle_i64x2(kAll64, first, second, 0x44));
    _mm512_storeu_si512(at + 64, _mm512_maskz_shuffle_i64x2(kAll64, first, second, 0xee));
  }
  if (w.zero_points || w.float_zero_points) return;  // starts are 0
  const __m512i zero_point = _mm512_set1_epi8(8);
  for (size_t unit = 0; unit < NBitsUnits(w); ++unit) {
    __m512i sums = _mm512_setzero_si512();
    for (size_t part = 0; part < count; ++part) {
      const int8_t* at = v.bytes + part * v.part_bytes + unit * kNBitsUnit;
      sums = _mm512_maskz_slli_epi32(kAll32, sums, kNBitsPartBits);
      sums = _mm512_dpbusd_epi32(sums, zero_point, _mm512_loadu_si512(at));
      sums = _mm512_dpbusd_epi32(sums, zero_point, _mm512_loadu_si512(at + kNBitsUnitBytes));
    }
    _mm512_storeu_si512(v.starts + unit * kNBitsUnitSums,
                        _mm512_sub_epi32(_mm512_setzero_si512(), sums));
  }
}

#undef TENON_VNNI

void Run(const NBitsMatrix& w, NBitsParts parts, const NBitsByteVector* x, size_t vectors,
         size_t first, size_t count, float* y, size_t stride) {
  constexpr NBitsParts kOne = NBitsParts::kOne, kThree = NBitsParts::kThree;
  constexpr size_t kMost = kMostNBitsVectors;
  const auto run = vectors == 1
                       ? (parts == kOne ? &RunVectors<kOne, 4, 1> : &RunVectors<kThree, 4, 1>)
                   : parts == kOne ? &RunVectors<kOne, 4, kMost>
                                   : &RunVectors<kThree, 4, kMost>;
  run(w, x, first, count, y, stride);
}

}  // namespace

const NBitsGemmForm kVnniNBitsGemm = {15, 20, &ArrangeBytes, &Run};

}  // namespace tenon::kernels
#endif
