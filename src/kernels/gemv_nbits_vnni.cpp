#include <algorithm>
#include <cstring>

#include "kernels/dispatch.h"
#include "kernels/gemv_nbits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace tenon::kernels {
namespace {

// A unit of 64 elements is 32 bytes of the matrix: bytes of x that meet the low halves of these,
// then those that meet the high halves. A block of 32 elements is half a unit, one of 64 or more is
// whole ones.
constexpr size_t kUnit = 64;

size_t PaddedBlocks(const NBitsMatrix& w) { return (w.blocks() + 15) / 16 * 16; }
size_t PaddedElements(const NBitsMatrix& w) {
  return (w.blocks() * w.block_size + kUnit - 1) / kUnit * kUnit;
}

// x as it is arranged: units of bytes; for each block a scale, and the scale times the bytes' sum.
struct ByteVector {
  int8_t* bytes;
  float* scales;
  float* sums;
};

template <class Byte>
ByteVector VectorIn(const NBitsMatrix& w, Byte* arranged) {
  auto* bytes = reinterpret_cast<int8_t*>(const_cast<std::byte*>(arranged));
  auto* floats = reinterpret_cast<float*>(bytes + PaddedElements(w));
  return {bytes, floats, floats + PaddedBlocks(w)};
}

}  // namespace

size_t ArrangedNBitsBytes(const NBitsMatrix& w) {
  return PaddedElements(w) + 2 * PaddedBlocks(w) * sizeof(float);
}

#if defined(__x86_64__)

namespace {

#define TENON_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")))

// The unmasked forms of some instructions read variables that GCC takes to be uninitialised.
constexpr __mmask8 kAll64 = 0xff;
constexpr __mmask16 kAll32 = 0xffff;

TENON_VNNI inline float SumOf(__m512 x) {
  const __m256d low = _mm512_maskz_extractf64x4_pd(kAll64, _mm512_castps_pd(x), 0);
  const __m256d high = _mm512_maskz_extractf64x4_pd(kAll64, _mm512_castps_pd(x), 1);
  const __m256 eight = _mm256_add_ps(_mm256_castpd_ps(low), _mm256_castpd_ps(high));
  __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  four = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(four, _mm_movehdup_ps(four)));
}

// The halves of 32 bytes, low ones first.
TENON_VNNI inline __m512i Halves(__m256i packed) {
  const __m512i both = _mm512_maskz_inserti64x4(kAll64, _mm512_castsi256_si512(packed),
                                                _mm256_srli_epi16(packed, 4), 1);
  return _mm512_and_si512(both, _mm512_set1_epi8(15));
}

// 64 elements of a unit in the order of the halves: even ones, then odd ones.
TENON_VNNI inline __m512i EvenThenOdd(__m512i bytes) {
  const __m512i even_odd_of_eight =
      _mm512_set_epi8(15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0, 15, 13, 11, 9, 7, 5, 3,
                      1, 14, 12, 10, 8, 6, 4, 2, 0, 15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4,
                      2, 0, 15, 13, 11, 9, 7, 5, 3, 1, 14, 12, 10, 8, 6, 4, 2, 0);
  const __m512i order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
  return _mm512_maskz_permutexvar_epi64(kAll64, order,
                                        _mm512_shuffle_epi8(bytes, even_odd_of_eight));
}

TENON_VNNI inline __m512 LoadFirst(const float* x, size_t n) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>(n >= 16 ? 0xffff : (1u << n) - 1), x);
}

// Of the `n` elements of a block: the scale, and the bytes into `bytes`, [block_size] in order.
TENON_VNNI float QuantizeBlock(const float* x, size_t n, int8_t* bytes) {
  __m512 most = _mm512_setzero_ps();
  for (size_t i = 0; i < n; i += 16) {
    most = _mm512_maskz_max_ps(kAll32, most, _mm512_abs_ps(LoadFirst(x + i, n - i)));
  }
  alignas(64) float lanes[16];
  _mm512_store_ps(lanes, most);
  const float scale = *std::max_element(lanes, lanes + 16) / 127;
  const __m512 inverse = _mm512_set1_ps(scale > 0 ? 1 / scale : 0);
  for (size_t i = 0; i < n; i += 16) {
    const __m512i rounded =
        _mm512_maskz_cvtps_epi32(kAll32, _mm512_mul_ps(LoadFirst(x + i, n - i), inverse));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + i),
                     _mm512_maskz_cvtsepi32_epi8(kAll32, rounded));
  }
  return scale;
}

TENON_VNNI void ArrangeBytes(const NBitsMatrix& w, const float* x, const ByteVector& v) {
  for (size_t block = 0; block < w.blocks(); ++block) {
    const size_t first = block * w.block_size;
    v.scales[block] =
        QuantizeBlock(x + first, std::min(w.block_size, w.k - first), v.bytes + first);
    int32_t sum = 0;
    for (size_t i = 0; i < w.block_size; ++i) sum += v.bytes[first + i];
    v.sums[block] = v.scales[block] * static_cast<float>(sum);
  }
  for (size_t unit = 0; unit < PaddedElements(w); unit += kUnit) {
    int8_t* at = v.bytes + unit;
    _mm512_storeu_si512(at, EvenThenOdd(_mm512_loadu_si512(at)));
  }
}

// The sum of `total` less zero points times scales times the sums of x, which the unsigned elements
// have too much.
TENON_VNNI inline float WithoutZeroPoints(const NBitsMatrix& w, const ByteVector& x, size_t row,
                                          __m512 total) {
  const size_t blocks = w.blocks();
  const float* scales = w.scales + row * blocks;
  if (w.zero_points || w.float_zero_points) {
    float sum = 0;
    for (size_t b = 0; b < blocks; ++b) sum += w.ZeroPoint(row, b) * scales[b] * x.sums[b];
    return SumOf(total) - sum;
  }
  __m512 sum = _mm512_setzero_ps();
  for (size_t b = 0; b < blocks; b += 16) {
    sum = _mm512_fmadd_ps(LoadFirst(scales + b, blocks - b), _mm512_loadu_ps(x.sums + b), sum);
  }
  return SumOf(_mm512_fnmadd_ps(sum, _mm512_set1_ps(8), total));
}

// Blocks of 32: two in a unit.
template <size_t kRows>
TENON_VNNI void RunHalfUnits(const NBitsMatrix& w, const ByteVector& x, size_t row, float* y) {
  const size_t blocks = w.blocks(), row_bytes = blocks * 16;
  const uint8_t* data = w.data + row * row_bytes;
  const __m512i spread = _mm512_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1, 0, 0, 0, 0, 1, 1, 1, 1);
  __m512 total[kRows];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) total[r] = _mm512_setzero_ps();
  for (size_t first = 0; first < blocks; first += 16) {
    const size_t count = std::min<size_t>(16, blocks - first);
    const auto mask = static_cast<__mmask16>((1u << count) - 1);
    alignas(64) float scales[kRows][16];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      _mm512_store_ps(scales[r], _mm512_mul_ps(_mm512_maskz_loadu_ps(
                                                   mask, w.scales + (row + r) * blocks + first),
                                               _mm512_loadu_ps(x.scales + first)));
    }
    for (size_t b = 0; b < count; b += 2) {
      const __m512i bytes = _mm512_loadu_si512(x.bytes + (first + b) * 32);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const uint8_t* at = data + r * row_bytes + (first + b) * 16;
        _mm_prefetch(at + kRows * row_bytes, _MM_HINT_T0);  // of the next rows
        // The last block may be alone.
        const __m256i packed =
            b + 1 < count
                ? _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at))
                : _mm256_zextsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
        const __m512i sums = _mm512_dpbusd_epi32(_mm512_setzero_si512(), Halves(packed), bytes);
        double two;
        std::memcpy(&two, scales[r] + b, sizeof(two));
        const __m512 pair = _mm512_castpd_ps(_mm512_set1_pd(two));
        total[r] = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(kAll32, sums),
                                   _mm512_maskz_permutexvar_ps(kAll32, spread, pair), total[r]);
      }
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) y[r] = WithoutZeroPoints(w, x, row + r, total[r]);
}

// Blocks of whole units.
template <size_t kRows>
TENON_VNNI void RunUnits(const NBitsMatrix& w, const ByteVector& x, size_t row, float* y) {
  const size_t blocks = w.blocks(), block_bytes = w.block_size / 2,
               row_bytes = blocks * block_bytes;
  const uint8_t* data = w.data + row * row_bytes;
  const int8_t* bytes = x.bytes;
  __m512 total[kRows];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) total[r] = _mm512_setzero_ps();
  for (size_t b = 0; b < blocks; ++b, data += block_bytes, bytes += w.block_size) {
    __m512i sums[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) sums[r] = _mm512_setzero_si512();
    for (size_t i = 0; i < block_bytes; i += 32) {
      const __m512i of_x = _mm512_loadu_si512(bytes + 2 * i);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) {
        const auto* at = reinterpret_cast<const __m256i*>(data + r * row_bytes + i);
        _mm_prefetch(data + (kRows + r) * row_bytes + i, _MM_HINT_T0);  // of the next rows
        sums[r] = _mm512_dpbusd_epi32(sums[r], Halves(_mm256_loadu_si256(at)), of_x);
      }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const __m512 scale = _mm512_set1_ps(w.scales[(row + r) * blocks + b] * x.scales[b]);
      total[r] = _mm512_fmadd_ps(_mm512_maskz_cvtepi32_ps(kAll32, sums[r]), scale, total[r]);
    }
  }
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) y[r] = WithoutZeroPoints(w, x, row + r, total[r]);
}

#undef TENON_VNNI

template <size_t kRows>
void RunRows(const NBitsMatrix& w, const ByteVector& x, size_t row, float* y) {
  if (w.block_size == 32) {
    RunHalfUnits<kRows>(w, x, row, y);
  } else {
    RunUnits<kRows>(w, x, row, y);
  }
}

}  // namespace

void ArrangeNBitsBytes(const NBitsMatrix& w, const float* x, std::byte* arranged) {
  std::memset(arranged, 0, ArrangedNBitsBytes(w));
  ArrangeBytes(w, x, VectorIn(w, arranged));
}

bool HasByteNBitsGemv(const NBitsMatrix& w) {
  return w.bits == 4 && w.block_size >= 32 && ActiveTarget() == Target::kAvx512 &&
         __builtin_cpu_supports("avx512vnni");
}

void RunByteNBitsGemv(const NBitsMatrix& w, const std::byte* arranged, const float* bias,
                      size_t first, size_t count, float* y) {
  constexpr size_t kRows = 4;
  const ByteVector x = VectorIn(w, arranged);
  size_t row = first;
  for (; row + kRows <= first + count; row += kRows) RunRows<kRows>(w, x, row, y + row);
  for (; row < first + count; ++row) RunRows<1>(w, x, row, y + row);
  for (size_t j = first; bias && j < first + count; ++j) y[j] += bias[j];
}

#else

bool HasByteNBitsGemv(const NBitsMatrix&) { return false; }
void ArrangeNBitsBytes(const NBitsMatrix&, const float*, std::byte*) {}
void RunByteNBitsGemv(const NBitsMatrix&, const std::byte*, const float*, size_t, size_t, float*) {}

#endif

}  // namespace tenon::kernels
