#if defined(__x86_64__)
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/gemm/gemm_nbits_form.h"
#include "kernels/gemm/round_block_avx512.h"
#include "kernels/gemm/sum_lanes_avx512.h"
#include "kernels/transpose_avx512.h"

namespace tenon::kernels {
namespace {

constexpr size_t kColumns = kNBitsPanelColumns;

#define TENON_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")))

constexpr size_t kMostRows = 7, kFewestRows = 5;  // of a tile
static_assert(kMostRows <= kMostNBitsTileRows);
constexpr size_t kLanes = 16;  // of 32 bits

constexpr uint64_t FirstBits(size_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }
constexpr __mmask16 FirstLanes(size_t n) { return static_cast<__mmask16>(FirstBits(n)); }

// --- Unpacking weights ---

// The words of 32 bits from rows[j] + first on, `bytes` bytes of each, word by word.
TENON_VNNI inline void LoadWords(const uint8_t* const (&rows)[kLanes], size_t first, size_t bytes,
                                 __m512i (&words)[kLanes]) {
  const __mmask64 present = FirstBits(bytes);
#pragma GCC unroll 16
  for (size_t j = 0; j < kLanes; ++j) {
    words[j] = rows[j] ? _mm512_maskz_loadu_epi8(present, rows[j] + first) : _mm512_setzero_si512();
  }
  TransposeLanes(words);
}

// Fills `kLanes` columns of a panel from column `into` on with rows [first, first + count) of w.
template <size_t kBits>
TENON_VNNI void UnpackColumns(const NBitsMatrix& w, size_t first, size_t count, size_t into,
                              const NBitsPanel& panel) {
  constexpr size_t kQuads = 8 / kBits, kChunk = 64;
  const size_t row_bytes = NBitsDepth(w) * kBits / 8, blocks = w.blocks();
  const __m512i mask = _mm512_set1_epi8(static_cast<char>(FirstBits(kBits)));
  const uint8_t* rows[kLanes] = {};
  const auto point_at = [&](const void* data, size_t stride) {
    for (size_t j = 0; j < count; ++j) {
      rows[j] = static_cast<const uint8_t*>(data) + (first + j) * stride;
    }
  };
  point_at(w.data, row_bytes);
  __m512i words[kLanes];
  for (size_t p = 0; p < row_bytes; p += kChunk) {
    const size_t present = std::min(kChunk, row_bytes - p);
    LoadWords(rows, p, present, words);
#pragma GCC unroll 16
    for (size_t i = 0; i < kLanes; ++i) {
      if (i * 4 >= present) break;
      uint8_t* const out = panel.weights + ((p / 4 + i) * kQuads * kColumns + into) * 4;
#pragma GCC unroll 4
      for (unsigned q = 0; q < kQuads; ++q) {
        const __m512i shifted = _mm512_maskz_srli_epi32(kAll32, words[i], q * kBits);
        _mm512_storeu_si512(out + q * kColumns * 4, _mm512_and_si512(shifted, mask));
      }
    }
  }
  point_at(w.scales, blocks * sizeof(float));
  for (size_t block = 0; block < blocks; block += kLanes) {
    const size_t present = std::min(kLanes, blocks - block);
    LoadWords(rows, block * sizeof(float), present * sizeof(float), words);
    for (size_t i = 0; i < present; ++i) {
      _mm512_storeu_si512(panel.scales + (block + i) * kColumns + into, words[i]);
    }
  }
  if (panel.zeros == nullptr) return;
  point_at(w.zero_points, w.zero_stride);
  constexpr size_t kWordBlocks = 32 / kBits;
  const __m512i word_mask = _mm512_set1_epi32(static_cast<int>(FirstBits(kBits)));
  for (size_t chunk = 0; chunk < w.zero_stride; chunk += kChunk) {
    LoadWords(rows, chunk, w.zero_stride - chunk, words);
    const size_t begin = chunk * 8 / kBits, end = std::min(blocks, begin + kChunk * 8 / kBits);
    for (size_t block = begin; block < end; ++block) {
      const auto shift = static_cast<unsigned>((block - begin) % kWordBlocks * kBits);
      const __m512i word = words[(block - begin) / kWordBlocks];
      _mm512_storeu_si512(
          panel.zeros + block * kColumns + into,
          _mm512_and_si512(_mm512_maskz_srli_epi32(kAll32, word, shift), word_mask));
    }
  }
}

NBitsPanel UnpackPanel(const NBitsMatrix& w, size_t first, size_t count, std::byte* memory) {
  const NBitsPanel panel(w, kColumns, memory);
  const auto unpack = w.bits == 2   ? &UnpackColumns<2>
                      : w.bits == 4 ? &UnpackColumns<4>
                                    : &UnpackColumns<8>;
  for (size_t into = 0; into < kColumns; into += kLanes) {
    unpack(w, first + into, count > into ? std::min(kLanes, count - into) : 0, into, panel);
  }
  return panel;
}

// --- Rounding rows ---

// For the bytes of 16 elements.
TENON_VNNI __m512i RowOrder(size_t bits) {
  alignas(16) char from[16];
  for (size_t i = 0; i < 16; ++i) from[i] = static_cast<char>(NBitsRowOrder(i, bits));
  return _mm512_maskz_broadcast_i32x4(kAll32, _mm_load_si128(reinterpret_cast<__m128i*>(from)));
}

// Puts a block's bytes in that order and returns their sum.
TENON_VNNI int32_t Arrange(int8_t* bytes, size_t count, __m512i order) {
  __m512i sums = _mm512_setzero_si512();
  for (size_t i = 0; i < count; i += 64) {
    const __mmask64 present = FirstBits(count - i);
    const __m512i some = _mm512_shuffle_epi8(_mm512_maskz_loadu_epi8(present, bytes + i), order);
    _mm512_mask_storeu_epi8(bytes + i, present, some);
    sums = _mm512_dpbusd_epi32(sums, _mm512_set1_epi8(1), some);
  }
  return SumOfLanes(sums);
}

// Writes the n elements of a block, and zeros up to the next multiple of 16, as bytes of two parts,
// or three, `stride` bytes apart: their sum times 2^8 and 1, or 2^14, 2^7 and 1, is the rounded
// element. Returns its scale.
TENON_VNNI float RoundBlockInParts(const float* x, size_t n, size_t parts, int8_t* bytes,
                                   size_t stride) {
  // Lower parts of 8 bits have a sign, those of 7 have none.
  const float scale = ScaleOfBlock(x, n, parts == 2 ? (127 << 8) + 127 : (1 << 21) - 1);
  const unsigned bits = parts == 2 ? 8 : 7;
  const __m512i half = _mm512_set1_epi32(parts == 2 ? 128 : 0);
  const __m512i mask = _mm512_set1_epi32((1 << bits) - 1);
  const __m512 inverse = _mm512_set1_ps(scale > 0 ? 1 / scale : 0);
  for (size_t i = 0; i < n; i += 16) {
    __m512i rest =
        _mm512_maskz_cvtps_epi32(kAll32, _mm512_mul_ps(LoadFirst(x + i, n - i), inverse));
    for (size_t part = parts - 1; part > 0; --part) {
      _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + part * stride + i),
                       _mm512_maskz_cvtepi32_epi8(kAll32, _mm512_and_si512(rest, mask)));
      rest = _mm512_maskz_srai_epi32(kAll32, _mm512_add_epi32(rest, half), bits);
    }
    _mm_storeu_si128(reinterpret_cast<__m128i*>(bytes + i),
                     _mm512_maskz_cvtsepi32_epi8(kAll32, rest));
  }
  return scale;
}

#define TENON_NBITS_TARGET TENON_VNNI
#include "kernels/gemm/gemm_nbits_form-inl.h"
#undef TENON_NBITS_TARGET

// --- Products ---

// Adds the products of four bytes at `a` with each quad. GCC 12 loads them for all quads apart and
// copies the sums twice.
TENON_VNNI inline __attribute__((always_inline)) void AddDots(__m512i& sums, __m512i quads,
                                                              const int8_t* a) {
  asm("vpdpbusd %2%{1to16%}, %1, %0"
      : "+v"(sums)
      : "v"(quads), "m"(*reinterpret_cast<const int32_t(*)>(a)));
}

template <size_t kRows, NBitsParts kRowParts>
TENON_VNNI void RunTile(const NBitsTileRows& rows, size_t block_size, const NBitsPanel& panel,
                        float* total) {
  constexpr auto kParts = static_cast<size_t>(kRowParts);
  constexpr unsigned kBits = kParts == 2 ? 8 : 7;
  __m512 sums[kRows][2];
#pragma GCC unroll 7
  for (size_t r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  const int8_t* a = rows.bytes;
  for (size_t block = 0; block < rows.blocks; ++block) {
    __m512i acc[kRows][2] = {};
    for (size_t part = 0; part < kParts; ++part) {
      const int32_t* const starts = rows.starts + block * kParts + part;
      const int32_t* const zeros = panel.zeros + block * kColumns;
#pragma GCC unroll 7
      for (size_t r = 0; r < kRows; ++r) {
        const __m512i start = _mm512_set1_epi32(starts[r * rows.blocks * kParts]);
#pragma GCC unroll 2
        for (size_t v = 0; v < 2; ++v) {
          __m512i own = start;
          if (panel.zeros) {
            own = _mm512_mullo_epi32(start, _mm512_loadu_si512(zeros + v * kLanes));
          }
          acc[r][v] =
              part == 0 ? own
                        : _mm512_add_epi32(_mm512_maskz_slli_epi32(kAll32, acc[r][v], kBits), own);
        }
      }
      const uint8_t* weights = panel.weights + block * block_size * kColumns;
      for (size_t p = 0; p < block_size; p += 4, weights += 4 * kColumns, a += 4) {
        const __m512i b0 = _mm512_loadu_si512(weights);
        const __m512i b1 = _mm512_loadu_si512(weights + 64);
#pragma GCC unroll 7
        for (size_t r = 0; r < kRows; ++r) {
          AddDots(acc[r][0], b0, a + r * rows.stride);
          AddDots(acc[r][1], b1, a + r * rows.stride);
        }
      }
    }
    const __m512 low = _mm512_loadu_ps(panel.scales + block * kColumns);
    const __m512 high = _mm512_loadu_ps(panel.scales + block * kColumns + kLanes);
#pragma GCC unroll 7
    for (size_t r = 0; r < kRows; ++r) {
      const __m512 a_scale = _mm512_set1_ps(rows.scales[r * rows.blocks + block]);
      const __m512 first = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll32, acc[r][0]), low);
      const __m512 second = _mm512_mul_ps(_mm512_maskz_cvtepi32_ps(kAll32, acc[r][1]), high);
      sums[r][0] = _mm512_fmadd_ps(first, a_scale, sums[r][0]);
      sums[r][1] = _mm512_fmadd_ps(second, a_scale, sums[r][1]);
    }
  }
#pragma GCC unroll 7
  for (size_t r = 0; r < kRows; ++r) {
    _mm512_store_ps(total + r * kColumns, sums[r][0]);
    _mm512_store_ps(total + r * kColumns + kLanes, sums[r][1]);
  }
}

template <NBitsParts kParts, size_t... kRows>
constexpr auto TileFunctions(std::index_sequence<kRows...>) {
  return std::array{&RunTile<kFewestRows + kRows, kParts>...};
}
constexpr auto kRowCounts = std::make_index_sequence<kMostRows - kFewestRows + 1>();
// [parts - 1][rows - kFewestRows]
constexpr std::array kTiles = {TileFunctions<NBitsParts::kOne>(kRowCounts),
                               TileFunctions<NBitsParts::kTwo>(kRowCounts),
                               TileFunctions<NBitsParts::kThree>(kRowCounts)};

// y = total + bias for the `count` columns of a row.
TENON_VNNI void StoreRow(const float* total, const float* bias, size_t count, float* y) {
  for (size_t i = 0; i < count; i += kLanes) {
    const __mmask16 present = FirstLanes(count - i);
    __m512 sums = _mm512_loadu_ps(total + i);
    if (bias) sums = _mm512_add_ps(sums, _mm512_maskz_loadu_ps(present, bias + i));
    _mm512_mask_storeu_ps(y + i, present, sums);
  }
}

#undef TENON_VNNI

void RunAnyTile(const NBitsMatrix& w, NBitsParts parts, const NBitsTileRows& rows, size_t count,
                const NBitsPanel& panel, float* total) {
  const auto& functions = kTiles[static_cast<size_t>(parts) - 1];
  functions[count - kFewestRows](rows, w.block_size, panel, total);
}

}  // namespace

const NBitsPanelForm kVnniNBitsPanels = {.most_bits = 8,
                                         .most_parts = NBitsParts::kThree,
                                         .columns = kColumns,
                                         .most_rows = kMostRows,
                                         .set_row = &SetRow,
                                         .unpack = &UnpackPanel,
                                         .run_tile = &RunAnyTile,
                                         .store_row = &StoreRow};

}  // namespace tenon::kernels
#endif
