#include <algorithm>
#include <bit>
#include <cstring>

#include "kernels/dispatch.h"
#include "kernels/gemm/gemv_nbits.h"

#if defined(__x86_64__)
#include "kernels/gemm/round_block_avx512.h"
#endif

namespace tenon::kernels {
namespace {

// A unit of 128 elements is 64 bytes of the matrix. x is arranged alike: first the 64 even
// elements, which meet the low halves of these bytes, then the odd ones, which meet the high
// halves. Each 16 bytes of a vector belong to one block, as the smallest block has 32 elements.
constexpr size_t kUnit = 128;
constexpr size_t kLanes = 16;  // of 32 bits

size_t UnitsOf(const NBitsMatrix& w) { return (w.blocks() * w.block_size + kUnit - 1) / kUnit; }
size_t PaddedBlocks(const NBitsMatrix& w) { return (w.blocks() + 15) / 16 * 16; }

// x as it is arranged: units of bytes, first all of the most significant part; for each block the
// sum of its elements; for each unit and lane of a vector of sums the scale, and what the sum
// starts from: minus the usual zero point, half the range, times the elements.
struct ByteVector {
  int8_t* bytes;
  size_t part_bytes;
  float* sums;
  float* scales;
  int32_t* starts;
};

template <class Byte>
ByteVector VectorIn(const NBitsMatrix& w, NBitsParts parts, Byte* arranged) {
  auto* bytes = reinterpret_cast<int8_t*>(const_cast<std::byte*>(arranged));
  const size_t part_bytes = UnitsOf(w) * kUnit;
  auto* floats = reinterpret_cast<float*>(bytes + static_cast<size_t>(parts) * part_bytes);
  float* scales = floats + PaddedBlocks(w);
  return {bytes, part_bytes, floats, scales,
          reinterpret_cast<int32_t*>(scales + UnitsOf(w) * kLanes)};
}

}  // namespace

size_t ArrangedNBitsBytes(const NBitsMatrix& w, NBitsParts parts) {
  return static_cast<size_t>(parts) * UnitsOf(w) * kUnit +
         (PaddedBlocks(w) + 2 * UnitsOf(w) * kLanes) * sizeof(float);
}

#if defined(__x86_64__)

namespace {

constexpr size_t kUnitBytes = kUnit / 2;

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

// How many bits a part has beside the sign.
constexpr int kPartBits = 7;

// Writes the n elements of a block as bytes of three parts, `stride` bytes apart, so that the sum
// of the parts times 2^14, 2^7 and 1 is the rounded element, and returns the scale of that.
TENON_VNNI float SplitBlock(const float* x, size_t n, int8_t* bytes, size_t stride) {
  const float scale = ScaleOfBlock(x, n, 127 << 2 * kPartBits);
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
    const __m512i first = rounded_shift(v, 2 * kPartBits);
    const __m512i rest = _mm512_sub_epi32(v, _mm512_maskz_slli_epi32(kAll32, first, 2 * kPartBits));
    const __m512i second = rounded_shift(rest, kPartBits);
    store(first, bytes);
    store(second, bytes + stride);
    store(_mm512_sub_epi32(rest, _mm512_maskz_slli_epi32(kAll32, second, kPartBits)),
          bytes + 2 * stride);
  }
  return scale;
}

TENON_VNNI void ArrangeBytes(const NBitsMatrix& w, NBitsParts parts, const float* x,
                             const ByteVector& v) {
  const size_t count = static_cast<size_t>(parts);
  for (size_t block = 0; block < w.blocks(); ++block) {
    const size_t first = block * w.block_size, n = std::min(w.block_size, w.k - first);
    int8_t* bytes = v.bytes + first;
    const float scale = parts == NBitsParts::kOne ? RoundBlock(x + first, n, bytes)
                                                  : SplitBlock(x + first, n, bytes, v.part_bytes);
    int64_t sum = 0;
    for (size_t part = 0; part < count; ++part, bytes += v.part_bytes) {
      int32_t of_part = 0;
      for (size_t i = 0; i < w.block_size; ++i) of_part += bytes[i];
      sum = (sum << kPartBits) + of_part;
    }
    v.sums[block] = scale * static_cast<float>(sum);
    std::fill_n(v.scales + first / 8, w.block_size / 8, scale);
  }
  for (int8_t* at = v.bytes; at < v.bytes + count * v.part_bytes; at += kUnit) {
    const __m512i first = EvenThenOdd(_mm512_loadu_si512(at));
    const __m512i second = EvenThenOdd(_mm512_loadu_si512(at + 64));
    _mm512_storeu_si512(at, _mm512_maskz_shuffle_i64x2(kAll64, first, second, 0x44));
    _mm512_storeu_si512(at + 64, _mm512_maskz_shuffle_i64x2(kAll64, first, second, 0xee));
  }
  if (w.zero_points || w.float_zero_points) return;  // starts are 0
  const __m512i zero_point = _mm512_set1_epi8(8);
  for (size_t unit = 0; unit < UnitsOf(w); ++unit) {
    __m512i sums = _mm512_setzero_si512();
    for (size_t part = 0; part < count; ++part) {
      const int8_t* at = v.bytes + part * v.part_bytes + unit * kUnit;
      sums = _mm512_maskz_slli_epi32(kAll32, sums, kPartBits);
      sums = _mm512_dpbusd_epi32(sums, zero_point, _mm512_loadu_si512(at));
      sums = _mm512_dpbusd_epi32(sums, zero_point, _mm512_loadu_si512(at + kUnitBytes));
    }
    _mm512_storeu_si512(v.starts + unit * kLanes, _mm512_sub_epi32(_mm512_setzero_si512(), sums));
  }
}

// The zero points of a row times the scales times the sums of x.
float ZeroPointSum(const NBitsMatrix& w, const ByteVector& x, size_t row) {
  const size_t blocks = w.blocks();
  float sum = 0;
  for (size_t b = 0; b < blocks; ++b) sum += w.ZeroPoint(row, b) * w.Scale(row, b) * x.sums[b];
  return sum;
}

// The scales of a unit, each for the lanes of its block.
struct ScaleSpread {
  __m512i order;
  size_t blocks;    // of a unit; 1 also if a block has several units
  int block_shift;  // log2 of the block size

  TENON_VNNI explicit ScaleSpread(const NBitsMatrix& w)
      : blocks(std::max<size_t>(1, kUnit / w.block_size)),
        block_shift(std::countr_zero(w.block_size)) {
    const __m512i lanes = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    order = blocks == 1   ? _mm512_setzero_si512()
            : blocks == 2 ? _mm512_maskz_srli_epi32(kAll32, lanes, 3)
                          : _mm512_maskz_srli_epi32(kAll32, lanes, 2);
  }

  // The position of a unit's first scale.
  size_t FirstOf(size_t unit) const { return unit * kUnit >> block_shift; }
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
    return _mm512_dpbusd_epi32(sums, high, _mm512_loadu_si512(bytes + kUnitBytes));
  }

  // Adds the products with a vector's elements to `total`.
  template <NBitsParts kParts>
  TENON_VNNI __m512 AddTo(__m512 total, const ByteVector& x, size_t unit) const {
    const int8_t* bytes = x.bytes + unit * kUnit;
    __m512i sums = _mm512_loadu_si512(x.starts + unit * kLanes);
    if constexpr (kParts == NBitsParts::kOne) {
      sums = AddPart(sums, bytes);
    } else {
      __m512i high = AddPart(_mm512_setzero_si512(), bytes);
      high = AddPart(_mm512_maskz_slli_epi32(kAll32, high, kPartBits), bytes + x.part_bytes);
      sums = AddPart(sums, bytes + 2 * x.part_bytes);
      sums = _mm512_add_epi32(sums, _mm512_maskz_slli_epi32(kAll32, high, kPartBits));
    }
    const __m512 scaled = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll32, sums), scales);
    return _mm512_fmadd_ps(scaled, _mm512_loadu_ps(x.scales + unit * kLanes), total);
  }
};

// Bytes between what is read and what is fetched from memory for later, at least.
constexpr size_t kLeastAhead = 8192;

// Rows of the matrix times vectors: y[v * stride + r]. kHasOneScale: a unit has; without it, it
// may.
template <NBitsParts kParts, size_t kRows, size_t kVectors, bool kHasOneScale>
TENON_VNNI void RunRows(const NBitsMatrix& w, const ByteVector* x, size_t row, float* y,
                        size_t stride) {
  const size_t blocks = w.blocks(), row_bytes = blocks * w.block_size / 2;
  const size_t ahead = std::max(kRows * row_bytes, kLeastAhead);
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
      const uint8_t* at = data + r * row_bytes + unit * kUnitBytes;
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
  const size_t whole = row_bytes / kUnitBytes, rest = row_bytes % kUnitBytes;
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
      y[v * stride + r] -= ZeroPointSum(w, x[v], row + r);
    }
  }
}

#undef TENON_VNNI

// Rows [first, first + count) of the matrix times kVectors vectors.
template <NBitsParts kParts, size_t kVectors>
void RunVectors(const NBitsMatrix& w, const ByteVector* x, size_t first, size_t count, float* y,
                size_t stride) {
  constexpr size_t kRows = 4;
  size_t row = first;
  // A form of its own pays where nothing else is done with a scale.
  const bool has_one_scale = kVectors == 1 && w.block_size >= kUnit;
  const auto run = has_one_scale ? &RunRows<kParts, kRows, kVectors, kVectors == 1>
                                 : &RunRows<kParts, kRows, kVectors, false>;
  for (; row + kRows <= first + count; row += kRows) run(w, x, row, y + row, stride);
  for (; row < first + count; ++row) {
    RunRows<kParts, 1, kVectors, false>(w, x, row, y + row, stride);
  }
}

template <size_t kVectors>
auto FindRun(NBitsParts parts) {
  return parts == NBitsParts::kOne ? &RunVectors<NBitsParts::kOne, kVectors>
                                   : &RunVectors<NBitsParts::kThree, kVectors>;
}

}  // namespace

void ArrangeNBitsBytes(const NBitsMatrix& w, NBitsParts parts, const float* x,
                       std::byte* arranged) {
  std::memset(arranged, 0, ArrangedNBitsBytes(w, parts));
  ArrangeBytes(w, parts, x, VectorIn(w, parts, arranged));
}

bool HasInt8NBitsGemm(const NBitsMatrix& w) {
  return w.bits == 4 && w.block_size >= 32 && ActiveTarget() == Target::kAvx512 &&
         __builtin_cpu_supports("avx512vnni");
}

void RunInt8NBitsGemm(const NBitsMatrix& w, NBitsParts parts, const std::byte* arranged, size_t m,
                      const float* bias, size_t first, size_t count, float* y, size_t n) {
  constexpr size_t kVectors = 4;
  const size_t bytes = ArrangedNBitsBytes(w, parts);
  for (size_t i = 0; i < m;) {
    ByteVector x[kVectors];
    const size_t vectors = m - i >= kVectors ? kVectors : 1;
    for (size_t v = 0; v < vectors; ++v) x[v] = VectorIn(w, parts, arranged + (i + v) * bytes);
    const auto run = vectors == kVectors ? FindRun<kVectors>(parts) : FindRun<1>(parts);
    run(w, x, first, count, y + i * n, n);
    i += vectors;
  }
  if (bias == nullptr) return;
  for (size_t i = 0; i < m; ++i) {
    for (size_t j = first; j < first + count; ++j) y[i * n + j] += bias[j];
  }
}

#else

bool HasInt8NBitsGemm(const NBitsMatrix&) { return false; }
void ArrangeNBitsBytes(const NBitsMatrix&, NBitsParts, const float*, std::byte*) {}
void RunInt8NBitsGemm(const NBitsMatrix&, NBitsParts, const std::byte*, size_t, const float*,
                      size_t, size_t, float*, size_t) {}

#endif

}  // namespace tenon::kernels
