#if defined(__x86_64__)
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/gemm/gemm_nbits_form.h"
#include "kernels/gemm/round_block_avx2.h"
#include "kernels/transpose_avx2.h"

namespace tenon::kernels {
namespace {

#define TENON_AVX2 __attribute__((target("avx2,fma")))

constexpr size_t kLanes = 8;    // of 32 bits
constexpr size_t kVectors = 2;  // of columns
constexpr size_t kColumns = kVectors * kLanes;
constexpr size_t kMostRows = 4, kFewestRows = 3;  // of a tile
static_assert(kMostRows <= kMostNBitsTileRows);

// Pairs of weights of 4 bits and bytes of rows are at most 2 * 15 * 128, of 2 bits 2 * 3 * 128. So
// many elements of the depth have exact sums in 16 bits. Of 8 bits not even two have.
constexpr size_t ExactDepth(size_t bits) { return bits == 2 ? 128 : 32; }

// Whether a block's sums are of 16 bits up to the end. Such a sum, one of two, starts from half of
// what theirs together does: minus the zero point times the bytes of the row. It fits then, too.
bool HasOneStep(const NBitsMatrix& w, size_t parts) {
  return parts == 1 && w.block_size <= ExactDepth(w.bits);
}

// --- Unpacking weights ---

// Calls store(i, words) with the words of 32 bits number i of 8 rows, for all `count` of a row.
template <class Store>
TENON_AVX2 inline __attribute__((always_inline)) void ForEachWord(const void* data, size_t stride,
                                                                  size_t rows, size_t count,
                                                                  Store&& store) {
  const __m256i lanes = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  for (size_t first = 0; first < count; first += kLanes) {
    const size_t present = std::min(kLanes, count - first);
    const __m256i mask = _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(present)), lanes);
    __m256i words[kLanes];
#pragma GCC unroll 8
    for (size_t j = 0; j < kLanes; ++j) {
      // Rows that are not there are the last one again.
      const char* at = static_cast<const char*>(data) + std::min(j, rows - 1) * stride + first * 4;
      words[j] = _mm256_maskload_epi32(reinterpret_cast<const int*>(at), mask);
    }
    TransposeLanes(words);
#pragma GCC unroll 8
    for (size_t i = 0; i < kLanes; ++i) {
      if (i < present) store(first + i, words[i]);
    }
  }
}

// Fills `kLanes` columns of a panel from column `into` on with rows [first, first + count) of w.
TENON_AVX2 void UnpackColumns(const NBitsMatrix& w, size_t first, size_t count, size_t into,
                              const NBitsPanel& panel) {
  const size_t blocks = w.blocks(), row_bytes = NBitsDepth(w) * w.bits / 8, quads = 8 / w.bits;
  const __m256i mask = _mm256_set1_epi8(static_cast<char>((1 << w.bits) - 1));
  ForEachWord(
      w.data + first * row_bytes, row_bytes, count,
      row_bytes / 4, [&](size_t i, __m256i words) TENON_AVX2 __attribute__((always_inline)) {
        uint8_t* out = panel.weights + (i * quads * kColumns + into) * 4;
        for (size_t quad = 0; quad < quads; ++quad, out += kColumns * 4) {
          Store256(_mm256_and_si256(words, mask), out);
          words = _mm256_srli_epi32(words, static_cast<int>(w.bits));
        }
      });
  const auto to = [&](float* scales) {
    return [=](size_t block, __m256i words) TENON_AVX2 __attribute__((always_inline)) {
      Store256(words, scales + block * kColumns + into);
    };
  };
  ForEachWord(w.scales + first * blocks, blocks * sizeof(float), count, blocks, to(panel.scales));
  if (panel.zeros == nullptr) return;
  for (size_t block = 0; block < blocks; ++block) {
    const size_t bit = block * w.bits;
    const uint8_t* at = w.zero_points + first * w.zero_stride + bit / 8;
    for (size_t j = 0; j < count; ++j, at += w.zero_stride) {
      const int32_t zero = *at >> bit % 8 & ((1 << w.bits) - 1);
      panel.zeros[block * kColumns + into + j] = zero << 16 | zero;  // one for each sum of 16 bits
    }
  }
}

NBitsPanel UnpackPanel(const NBitsMatrix& w, size_t first, size_t count, std::byte* memory) {
  const NBitsPanel panel(w, kColumns, memory);
  for (size_t into = 0; into < count; into += kLanes) {
    UnpackColumns(w, first + into, std::min(kLanes, count - into), into, panel);
  }
  return panel;
}

// --- Rounding rows ---

// For the bytes of 16 elements.
TENON_AVX2 __m128i RowOrder(size_t bits) {
  alignas(16) char from[16];
  for (size_t i = 0; i < 16; ++i) from[i] = static_cast<char>(NBitsRowOrder(i, bits));
  return _mm_load_si128(reinterpret_cast<__m128i*>(from));
}

// Puts a block's bytes in that order and returns their sum.
TENON_AVX2 int32_t Arrange(int8_t* bytes, size_t count, __m128i order) {
  __m128i sums = _mm_setzero_si128();
  for (size_t i = 0; i < count; i += 16) {
    auto* at = reinterpret_cast<__m128i*>(bytes + i);
    const __m128i some = _mm_shuffle_epi8(_mm_loadu_si128(at), order);
    _mm_storeu_si128(at, some);
    const __m128i pairs = _mm_maddubs_epi16(_mm_set1_epi8(1), some);
    sums = _mm_add_epi32(sums, _mm_madd_epi16(pairs, _mm_set1_epi16(1)));
  }
  sums = _mm_add_epi32(sums, _mm_unpackhi_epi64(sums, sums));
  return _mm_cvtsi128_si32(_mm_add_epi32(sums, _mm_shuffle_epi32(sums, 1)));
}

// Writes the n elements of a block, and zeros up to the next multiple of 16, as bytes of two parts,
// `stride` bytes apart: their sum times 2^8 and 1 is the rounded element. Returns its scale.
TENON_AVX2 float RoundBlockInParts(const float* x, size_t n, size_t, int8_t* bytes, size_t stride) {
  const float scale = ScaleOfBlock(x, n, (127 << 8) + 127);
  const __m256 inverse = _mm256_set1_ps(scale > 0 ? 1 / scale : 0);
  for (size_t i = 0; i < n; i += 16) {
    const Ints16 rounded = Ints16::Rounded(Floats16(x + i, n - i), inverse);
    (rounded & 255).StoreUnsigned(bytes + stride + i);  // with a sign
    (rounded + 128).ShiftedRight<8>().StoreSigned(bytes + i);
  }
  return scale;
}

#define TENON_NBITS_TARGET TENON_AVX2
#include "kernels/gemm/gemm_nbits_form-inl.h"
#undef TENON_NBITS_TARGET

// What sums start from: of 16 bits, in pairs; or of 32 bits, for both parts together.
void SetRowAndStarts(const NBitsMatrix& w, NBitsParts parts, const float* x, int8_t* row,
                     float* scales, int32_t* starts) {
  SetRow(w, parts, x, row, scales, starts);
  if (parts == NBitsParts::kTwo) {
    for (size_t i = 0; i < 2 * w.blocks(); i += 2) starts[i] = starts[i] * 256 + starts[i + 1];
  } else if (HasOneStep(w, 1)) {
    for (size_t i = 0; i < w.blocks(); ++i) {
      const int32_t half = starts[i] / 2;
      starts[i] =
          static_cast<int32_t>(static_cast<uint32_t>(starts[i] - half) << 16) | (half & 0xffff);
    }
  }
}

// --- Products ---

template <size_t kRows>
using Sums = __m256i[kRows][kVectors];

// Adds the products of `depth` elements, a multiple of 16, to sums of 16 bits.
template <size_t kRows>
TENON_AVX2 inline __attribute__((always_inline)) void Multiply(const uint8_t* weights,
                                                               const int8_t* a, size_t stride,
                                                               size_t depth, Sums<kRows>& sums) {
  for (size_t first = 0; first < depth; first += 16) {
#pragma GCC unroll 4
    for (size_t p = 0; p < 16; p += 4, weights += 4 * kColumns, a += 4) {
      __m256i quads[kVectors];
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v) quads[v] = Load256(weights + v * 32);
#pragma GCC unroll 6
      for (size_t r = 0; r < kRows; ++r) {
        int32_t four;
        std::memcpy(&four, a + r * stride, 4);
        const __m256i bytes = _mm256_set1_epi32(four);
#pragma GCC unroll 2
        for (size_t v = 0; v < kVectors; ++v) {
          __m256i sum = _mm256_add_epi16(sums[r][v], _mm256_maddubs_epi16(quads[v], bytes));
          // GCC 12 would add up products in pairs, which it has no registers for.
          asm("" : "+x"(sum));
          sums[r][v] = sum;
        }
      }
    }
  }
}

// What the sums of a block start from. of_16_bits: in pairs.
template <size_t kRows>
TENON_AVX2 inline __attribute__((always_inline)) void Start(const int32_t* starts, size_t stride,
                                                            const int32_t* zeros, bool of_16_bits,
                                                            Sums<kRows>& sums) {
#pragma GCC unroll 6
  for (size_t r = 0; r < kRows; ++r) {
    sums[r][0] = sums[r][1] = _mm256_set1_epi32(starts[r * stride]);
  }
  if (zeros == nullptr) return;
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    const __m256i pairs = Load256(zeros + v * kLanes);
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
      __m256i& sum = sums[r][v];
      sum = of_16_bits ? _mm256_mullo_epi16(sum, pairs)
                       : _mm256_mullo_epi32(sum, _mm256_srli_epi32(pairs, 16));
    }
  }
}

// Adds the products of a block of several parts, or that is too deep for sums of 16 bits, to sums
// of 32 bits.
template <size_t kRows>
TENON_AVX2 inline __attribute__((always_inline)) void MultiplySteps(const NBitsMatrix& w,
                                                                    size_t parts,
                                                                    const uint8_t* weights,
                                                                    const int8_t* a, size_t stride,
                                                                    Sums<kRows>& all) {
  const size_t step = std::min(w.block_size, ExactDepth(w.bits));
  for (size_t part = 0; part < parts; ++part, a += w.block_size) {
    const __m256i factor = _mm256_set1_epi16(part + 1 < parts ? 256 : 1);
    for (size_t first = 0; first < w.block_size; first += step) {
      // The sums of 16 bits have all registers.
      asm volatile("" : : "r"(all) : "memory");
      Sums<kRows> sums = {};
      Multiply<kRows>(weights + first * kColumns, a + first, stride, step, sums);
#pragma GCC unroll 12
      for (size_t i = 0; i < kRows * kVectors; ++i) {
        __m256i& sum = all[i / kVectors][i % kVectors];
        const __m256i wide = _mm256_madd_epi16(sums[i / kVectors][i % kVectors], factor);
        sum = _mm256_add_epi32(sum, wide);
      }
    }
  }
}

template <size_t kRows>
TENON_AVX2 void RunTile(const NBitsMatrix& w, size_t parts, const NBitsTileRows& rows,
                        const NBitsPanel& panel, float* total) {
  const size_t block_size = w.block_size, stride = rows.stride, blocks = rows.blocks;
  const bool has_one_step = HasOneStep(w, parts);
  const int8_t* a = rows.bytes;
  const uint8_t* weights = panel.weights;
  const float *a_scales = rows.scales, *scales = panel.scales;
  const int32_t *starts = rows.starts, *zeros = panel.zeros;
#pragma GCC unroll 12
  for (size_t i = 0; i < kRows * kColumns; i += kLanes) {
    _mm256_store_ps(total + i, _mm256_setzero_ps());
  }
  for (size_t block = 0; block < blocks; ++block) {
    Sums<kRows> sums;
    if (has_one_step) {
      asm volatile("" : : "r"(total) : "memory");
      Start<kRows>(starts, blocks * parts, zeros, true, sums);
      Multiply<kRows>(weights, a, stride, block_size, sums);
#pragma GCC unroll 12
      for (size_t i = 0; i < kRows * kVectors; ++i) {
        __m256i& sum = sums[i / kVectors][i % kVectors];
        sum = _mm256_madd_epi16(sum, _mm256_set1_epi16(1));
      }
    } else {
      Sums<kRows> all;
      Start<kRows>(starts, blocks * parts, zeros, false, all);
      MultiplySteps<kRows>(w, parts, weights, a, stride, all);
#pragma GCC unroll 12
      for (size_t i = 0; i < kRows * kVectors; ++i) {
        sums[i / kVectors][i % kVectors] = all[i / kVectors][i % kVectors];
      }
    }
#pragma GCC unroll 6
    for (size_t r = 0; r < kRows; ++r) {
      const __m256 a_scale = _mm256_set1_ps(a_scales[r * blocks]);
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v) {
        const __m256 sum = _mm256_cvtepi32_ps(sums[r][v]);
        const __m256 scaled = _mm256_mul_ps(sum, _mm256_loadu_ps(scales + v * kLanes));
        float* const at = total + r * kColumns + v * kLanes;
        _mm256_store_ps(at, _mm256_fmadd_ps(scaled, a_scale, _mm256_load_ps(at)));
      }
    }
    a += block_size * parts;
    weights += block_size * kColumns;
    scales += kColumns;
    ++a_scales;
    starts += parts;
    if (zeros) zeros += kColumns;
  }
}

template <size_t... kRows>
constexpr auto TileFunctions(std::index_sequence<kRows...>) {
  return std::array{&RunTile<kFewestRows + kRows>...};
}

void RunAnyTile(const NBitsMatrix& w, NBitsParts parts, const NBitsTileRows& rows, size_t count,
                const NBitsPanel& panel, float* total) {
  static constexpr auto kTiles =
      TileFunctions(std::make_index_sequence<kMostRows - kFewestRows + 1>());
  kTiles[count - kFewestRows](w, static_cast<size_t>(parts), rows, panel, total);
}

TENON_AVX2 void StoreRow(const float* total, const float* bias, size_t count, float* y) {
  if (count < kColumns) {
    for (size_t i = 0; i < count; ++i) y[i] = bias ? total[i] + bias[i] : total[i];
    return;
  }
#pragma GCC unroll 2
  for (size_t i = 0; i < kColumns; i += kLanes) {
    __m256 sums = _mm256_load_ps(total + i);
    if (bias) sums = _mm256_add_ps(sums, _mm256_loadu_ps(bias + i));
    _mm256_storeu_ps(y + i, sums);
  }
}

#undef TENON_AVX2

}  // namespace

// Weights of 8 bits, and rows of three parts, would take as long as floats.
const NBitsPanelForm kAvx2NBitsPanels = {.most_bits = 4,
                                         .most_parts = NBitsParts::kTwo,
                                         .columns = kColumns,
                                         .most_rows = kMostRows,
                                         .set_row = &SetRowAndStarts,
                                         .unpack = &UnpackPanel,
                                         .run_tile = &RunAnyTile,
                                         .store_row = &StoreRow};

}  // namespace tenon::kernels
#endif
