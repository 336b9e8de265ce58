// Convolutions of bytes in NHWC with AVX-512's dot products: quads of neighbours, 16 channels in a
// vector.
#include "kernels/conv/conv_int8_nhwc_form.h"

#if defined(__x86_64__)

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <utility>

#include "kernels/gemm/requantize_avx512.h"
#include "kernels/transpose_avx512.h"

namespace tenon::kernels {
namespace {

#define TENON_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

// GCC 12's partial redundancy elimination puts the sums of a tile into memory in every step.
#if defined(__clang__)
#define TENON_KEEPS_REGISTERS
#else
#define TENON_KEEPS_REGISTERS __attribute__((optimize("no-tree-pre")))
#endif

constexpr size_t kLanes = 16;
constexpr size_t kPanel = 2 * kLanes;
constexpr size_t kMostPixels = 14;  // 28 vectors of sums

// The channels of a panel that a tile writes.
uint32_t WrittenChannels(const NhwcTile& tile) {
  return static_cast<uint32_t>((uint64_t{1} << tile.channels) - 1);
}

// Rounds a tile's sums, [pixels][kPanel], and stores them.
TENON_VNNI void StoreBounded(const NhwcTile& tile, const int32_t* sums, size_t pixels) {
  const ByteRounding rounding = MakeByteRounding(tile.zero_point, tile.is_signed);
  uint8_t* out = tile.out;
  for (size_t p = 0; p < pixels; ++p, sums += kPanel, out += tile.out_stride) {
    for (size_t half = 0; half < kPanel; half += kLanes) {
      const auto written = static_cast<__mmask16>(WrittenChannels(tile) >> half);
      _mm_mask_storeu_epi8(out + half, written,
                           RoundToBytes(_mm512_load_si512(sums + half),
                                        _mm512_loadu_ps(tile.scales + half), rounding));
    }
  }
}

// The same if the scales are so small that sums need no bounds.
TENON_VNNI void StoreTile(const NhwcTile& tile, const int32_t* sums, size_t pixels) {
  if (!tile.has_small_scales) return StoreBounded(tile, sums, pixels);
  const uint32_t written = WrittenChannels(tile);
  const __m512 low_scale = _mm512_loadu_ps(tile.scales);
  const __m512 high_scale = _mm512_loadu_ps(tile.scales + kLanes);
  uint8_t* out = tile.out;
  for (size_t p = 0; p < pixels; p += 2, sums += 2 * kPanel) {
    const int32_t* next = p + 1 < pixels ? sums + kPanel : sums;
    const __m512i rows[4] = {_mm512_load_si512(sums), _mm512_load_si512(sums + kLanes),
                             _mm512_load_si512(next), _mm512_load_si512(next + kLanes)};
    const __m512i bytes =
        RoundRowsToBytes(rows, low_scale, high_scale, tile.zero_point, tile.is_signed);
    _mm256_mask_storeu_epi8(out, written, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 0));
    out += tile.out_stride;
    if (p + 1 == pixels) break;
    _mm256_mask_storeu_epi8(out, written, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 1));
    out += tile.out_stride;
  }
}

struct RowScales {
  __m512 low, high;
};

// The same from pixel kPixel on; recursive, so that the sums are never in memory.
template <size_t kPixel, size_t kPixels, size_t kVectors>
TENON_VNNI __attribute__((always_inline)) inline void StoreFrom(
    const __m512i (&acc)[kPixels][kVectors], const RowScales& scales, const NhwcTile& tile,
    uint32_t written, uint8_t* out) {
  if constexpr (kPixel < kPixels) {
    constexpr size_t kNext = kPixel + 1 < kPixels ? kPixel + 1 : kPixel;
    const __m512i rows[4] = {acc[kPixel][0], acc[kPixel][kVectors - 1], acc[kNext][0],
                             acc[kNext][kVectors - 1]};
    const __m512i bytes =
        RoundRowsToBytes(rows, scales.low, scales.high, tile.zero_point, tile.is_signed);
    _mm256_mask_storeu_epi8(out, written, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 0));
    if constexpr (kNext > kPixel) {
      out += tile.out_stride;
      _mm256_mask_storeu_epi8(out, written, _mm512_maskz_extracti64x4_epi64(0xff, bytes, 1));
    }
    StoreFrom<kPixel + 2>(acc, scales, tile, written, out + tile.out_stride);
  }
}

// Tiles of at least so many pixels, which are most, round their sums in registers.
constexpr size_t kLeastKept = 12;

template <size_t kPixels, bool kIsWide>
TENON_KEEPS_REGISTERS TENON_VNNI void RunTile(const NhwcTile& tile) {
  constexpr size_t kVectors = kIsWide ? 2 : 1;
  __m512i acc[kPixels][kVectors];
#pragma GCC unroll 14
  for (size_t p = 0; p < kPixels; ++p) {
    acc[p][0] = _mm512_loadu_si512(tile.starts);
    if constexpr (kIsWide) acc[p][1] = _mm512_loadu_si512(tile.starts + kLanes);
  }
  const int8_t* weights = tile.weights;
  const size_t quads = tile.runs * tile.run_quads;
  for (size_t q = 0; q < quads; ++q, weights += kVectors * 64) {
    const ptrdiff_t at = tile.offsets[q];
    const __m512i w0 = _mm512_loadu_si512(weights);
    __m512i w1;
    if constexpr (kIsWide) w1 = _mm512_loadu_si512(weights + 64);
#pragma GCC unroll 14
    for (size_t p = 0; p < kPixels; ++p) {
      int32_t four;
      std::memcpy(&four, tile.pixels[p] + at, sizeof(four));
      const __m512i quad = _mm512_set1_epi32(four);
      acc[p][0] = _mm512_dpbusd_epi32(acc[p][0], quad, w0);
      if constexpr (kIsWide) acc[p][1] = _mm512_dpbusd_epi32(acc[p][1], quad, w1);
    }
  }
  if constexpr (kIsWide && kPixels >= kLeastKept) {
    if (tile.has_small_scales) {
      const RowScales scales = {_mm512_loadu_ps(tile.scales),
                                _mm512_loadu_ps(tile.scales + kLanes)};
      StoreFrom<0>(acc, scales, tile, WrittenChannels(tile), tile.out);
      return;
    }
  }
  alignas(64) int32_t sums[kPixels * kPanel];
#pragma GCC unroll 14
  for (size_t p = 0; p < kPixels; ++p) {
    _mm512_store_si512(sums + p * kPanel, acc[p][0]);
    _mm512_store_si512(sums + p * kPanel + kLanes,
                       kIsWide ? acc[p][kVectors - 1] : _mm512_setzero_si512());
  }
  StoreTile(tile, sums, kPixels);
}

#undef TENON_KEEPS_REGISTERS

template <bool kIsWide, size_t... kPixels>
constexpr auto TileFunctions(std::index_sequence<kPixels...>) {
  return std::array{&RunTile<kPixels + 1, kIsWide>...};
}

void RunAnyTile(const NhwcTile& tile, size_t pixels, bool is_wide) {
  static constexpr auto kNarrow = TileFunctions<false>(std::make_index_sequence<kMostPixels>());
  static constexpr auto kWide = TileFunctions<true>(std::make_index_sequence<kMostPixels>());
  (is_wide ? kWide : kNarrow)[pixels - 1](tile);
}

TENON_VNNI void PackWeights(const NhwcWeightChunk& chunk) {
  const __mmask64 mask = ~uint64_t{0} >> (kWeightChunk - chunk.bytes);
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(chunk.flip));
  __m512i words[kLanes];
  for (size_t j = 0; j < kLanes; ++j) {
    words[j] = _mm512_setzero_si512();
    if (j >= chunk.count) continue;
    words[j] = _mm512_maskz_mov_epi8(
        mask, _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, chunk.rows[j]), flip));
  }
  TransposeLanes(words);
  const __m512i ones = _mm512_set1_epi8(1);
  __m512i sums = _mm512_loadu_si512(chunk.sums);
  for (size_t i = 0; i * 4 < chunk.bytes; ++i) {
    _mm512_storeu_si512(chunk.into + i * chunk.quad_distance, words[i]);
    sums = _mm512_dpbusd_epi32(sums, ones, words[i]);
  }
  _mm512_storeu_si512(chunk.sums, sums);
}

TENON_VNNI size_t InterleaveWhole(const uint8_t* const (&rows)[kInterleavedRows], size_t count,
                                  uint8_t flip_byte, uint8_t* out) {
  const __m512i flip = _mm512_set1_epi8(static_cast<char>(flip_byte));
  size_t i = 0;
  for (; i + 64 <= count; i += 64, out += 256) {
    __m512i r[kInterleavedRows];
#pragma GCC unroll 4
    for (size_t k = 0; k < kInterleavedRows; ++k) {
      r[k] = _mm512_xor_si512(_mm512_loadu_si512(rows[k] + i), flip);
    }
    const __m512i low01 = _mm512_unpacklo_epi8(r[0], r[1]);
    const __m512i high01 = _mm512_unpackhi_epi8(r[0], r[1]);
    const __m512i low23 = _mm512_unpacklo_epi8(r[2], r[3]);
    const __m512i high23 = _mm512_unpackhi_epi8(r[2], r[3]);
    // Elements 16 l + 4 j + [0, 4) in the 128 bits l of vector j.
    const __m512i j0 = _mm512_unpacklo_epi16(low01, low23);
    const __m512i j1 = _mm512_unpackhi_epi16(low01, low23);
    const __m512i j2 = _mm512_unpacklo_epi16(high01, high23);
    const __m512i j3 = _mm512_unpackhi_epi16(high01, high23);
    constexpr __mmask16 kAll = kAllLanes;
    const __m512i a = _mm512_maskz_shuffle_i32x4(kAll, j0, j1, 0x44);  // l0 l1 of j0, j1
    const __m512i b = _mm512_maskz_shuffle_i32x4(kAll, j2, j3, 0x44);
    const __m512i c = _mm512_maskz_shuffle_i32x4(kAll, j0, j1, 0xee);  // l2 l3
    const __m512i d = _mm512_maskz_shuffle_i32x4(kAll, j2, j3, 0xee);
    _mm512_storeu_si512(out, _mm512_maskz_shuffle_i32x4(kAll, a, b, 0x88));
    _mm512_storeu_si512(out + 64, _mm512_maskz_shuffle_i32x4(kAll, a, b, 0xdd));
    _mm512_storeu_si512(out + 128, _mm512_maskz_shuffle_i32x4(kAll, c, d, 0x88));
    _mm512_storeu_si512(out + 192, _mm512_maskz_shuffle_i32x4(kAll, c, d, 0xdd));
  }
  return i;
}

// kVectors x 16 channels from `first` on, at all pixels of the row. With kTaps, the weights of so
// many taps stay in registers; they are in one band.
template <size_t kVectors, size_t kTaps>
TENON_VNNI void RunChannels(const NhwcDepthwiseRow& row, size_t first, __mmask16 last) {
  constexpr size_t kKept = kTaps > 0 ? kTaps : 1;
  __m512i kept[kKept][kVectors], starts[kVectors];
  __m512 scales[kVectors];
#pragma GCC unroll 4
  for (size_t v = 0; v < kVectors; ++v) {
    const size_t channel = first + v * kLanes;
    starts[v] = _mm512_loadu_si512(row.starts + channel);
    scales[v] = _mm512_loadu_ps(row.scales + channel);
    if constexpr (kTaps > 0) {
#pragma GCC unroll 5
      for (size_t t = 0; t < kTaps; ++t) {
        kept[t][v] =
            _mm512_loadu_si512(row.weights + t * row.weight_stride + channel * kInterleavedRows);
      }
    }
  }
  const ByteRounding rounding = MakeByteRounding(row.zero_point, row.is_signed);
  const uint8_t* pixel = row.bands + first * kInterleavedRows;
  uint8_t* out = row.out + first;
  for (size_t x = 0; x < row.width; ++x, pixel += row.step, out += row.channels) {
    __m512i acc[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) acc[v] = starts[v];
    if constexpr (kTaps > 0) {
#pragma GCC unroll 5
      for (size_t t = 0; t < kTaps; ++t) {
#pragma GCC unroll 4
        for (size_t v = 0; v < kVectors; ++v) {
          const __m512i quads = _mm512_loadu_si512(pixel + t * row.tap_stride + v * 64);
          acc[v] = _mm512_dpbusd_epi32(acc[v], quads, kept[t][v]);
        }
      }
    } else {
      const int8_t* weights = row.weights + first * kInterleavedRows;
      const uint8_t* band = pixel;
      for (size_t b = 0; b < row.bands_count; ++b, band += row.band_bytes) {
        const uint8_t* at = band;
        for (size_t t = 0; t < row.kernel_width; ++t) {
#pragma GCC unroll 4
          for (size_t v = 0; v < kVectors; ++v) {
            acc[v] = _mm512_dpbusd_epi32(acc[v], _mm512_loadu_si512(at + v * 64),
                                         _mm512_loadu_si512(weights + v * 64));
          }
          at += row.tap_stride;
          weights += row.weight_stride;
        }
      }
    }
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      _mm_mask_storeu_epi8(out + v * kLanes, v + 1 < kVectors ? kAllLanes : last,
                           RoundToBytes(acc[v], scales[v], rounding));
    }
  }
}

#undef TENON_VNNI

template <size_t kTaps>
void RunRow(const NhwcDepthwiseRow& row) {
  using Run = void (*)(const NhwcDepthwiseRow&, size_t, __mmask16);
  static constexpr Run kRuns[] = {&RunChannels<1, kTaps>, &RunChannels<2, kTaps>,
                                  &RunChannels<3, kTaps>, &RunChannels<4, kTaps>};
  const size_t vectors = (row.channels + kLanes - 1) / kLanes;
  for (size_t done = 0; done < vectors;) {
    // Groups of nearly equal numbers of vectors.
    const size_t groups = (vectors - done + std::size(kRuns) - 1) / std::size(kRuns);
    const size_t count = (vectors - done + groups - 1) / groups;
    const size_t first = done * kLanes, end = std::min(row.channels, (done + count) * kLanes);
    const size_t lanes = end - first - (count - 1) * kLanes;
    kRuns[count - 1](row, first, static_cast<__mmask16>((1u << lanes) - 1));
    done += count;
  }
}

void RunDepthwiseRow(const NhwcDepthwiseRow& row) {
  if (row.bands_count == 1 && row.kernel_width == 3) {
    RunRow<3>(row);
  } else {
    RunRow<0>(row);
  }
}

constexpr NhwcForm kForm = {.lanes = kLanes,
                            .panel = kPanel,
                            .most_pixels = kMostPixels,
                            .run_tile = &RunAnyTile,
                            .rest_bytes = [](size_t) -> size_t { return 0; },
                            .pack_weights = &PackWeights,
                            .finish_panel = nullptr,
                            .reads_words = nullptr,
                            .widen = nullptr,
                            .interleave = &InterleaveWhole,
                            .most_taps = SIZE_MAX,
                            .run_depthwise_row = &RunDepthwiseRow};

}  // namespace

const NhwcForm* VnniNhwcForm() {
  static const bool has_instructions = __builtin_cpu_supports("avx512vnni") &&
                                       __builtin_cpu_supports("avx512bw") &&
                                       __builtin_cpu_supports("avx512vl");
  return has_instructions ? &kForm : nullptr;
}

}  // namespace tenon::kernels

#endif
