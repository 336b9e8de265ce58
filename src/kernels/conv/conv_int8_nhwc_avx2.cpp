// Convolutions of bytes in NHWC with AVX2: quads of neighbours, 8 channels in a vector.
#include "kernels/conv/conv_int8_nhwc_form.h"

#if defined(__x86_64__)

#include <algorithm>
#include <cstring>

#include "kernels/conv/round_channels_avx2.h"
#include "kernels/gemm/rests_avx2.h"
#include "kernels/transpose_avx2.h"

namespace tenon::kernels {
namespace {

constexpr size_t kLanes = kChannelLanes;
constexpr size_t kPanel = kChannelPanel;
constexpr size_t kMostPixels = 6;  // 12 vectors of sums
constexpr size_t kMostTaps = 64;
constexpr size_t kPairs = 2 * kLanes;  // bytes of a vector of weights in pairs

// Rounds a tile's sums, [pixels][kPanel], and stores them.
TENON_AVX2 void StoreTile(const NhwcTile& tile, const int32_t* sums, size_t pixels) {
  const Rounding rounding = MakeRounding(tile.scales, tile.zero_point, tile.is_signed);
  uint8_t* out = tile.out;
  for (size_t p = 0; p < pixels; ++p, sums += kPanel, out += tile.out_stride) {
    const __m256i words = RoundRow<true>(LoadInts(sums), LoadInts(sums + kLanes), rounding);
    const __m256i bytes = BytesOfRows(words, words, tile.is_signed);
    StoreChannels(_mm256_castsi256_si128(bytes), out, tile.channels);
  }
}

template <size_t kPixels, size_t kVectors>
struct TileSums {
  __m256i sums[kPixels][kVectors];

  TENON_AVX2 explicit TileSums(const NhwcTile& tile) {
#pragma GCC unroll 6
    for (size_t p = 0; p < kPixels; ++p) {
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v) sums[p][v] = LoadInts(tile.starts + v * kLanes);
    }
  }

  // Of the first `count` pixels: all, or all but one.
  TENON_AVX2 void Store(const NhwcTile& tile, size_t count) const {
    if (kVectors == 2 && tile.channels == kPanel && tile.has_small_scales) {
      return StoreWhole(tile, count);
    }
    alignas(32) int32_t all[kPixels * kPanel];
#pragma GCC unroll 6
    for (size_t p = 0; p < kPixels; ++p) {
      auto* const into = reinterpret_cast<__m256i*>(all + p * kPanel);
      _mm256_store_si256(into, sums[p][0]);
      _mm256_store_si256(into + 1, kVectors == 2 ? sums[p][kVectors - 1] : _mm256_setzero_si256());
    }
    StoreTile(tile, all, count);
  }

 private:
  TENON_AVX2 void StoreWhole(const NhwcTile& tile, size_t count) const {
    const Rounding rounding = MakeRounding(tile.scales, tile.zero_point, tile.is_signed);
    uint8_t* out = tile.out;
#pragma GCC unroll 3
    for (size_t p = 0; p < kPixels; p += 2) {
      const __m256i bytes = BytesOfRows(
          RoundRow<false>(sums[p][0], sums[p][kVectors - 1], rounding),
          RoundRow<false>(sums[p + 1][0], sums[p + 1][kVectors - 1], rounding), tile.is_signed);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_castsi256_si128(bytes));
      if (p + 2 > count) break;
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out + tile.out_stride),
                       _mm256_extracti128_si256(bytes, 1));
      out += 2 * tile.out_stride;
    }
  }
};

// Whether the sums of a panel's quads may be added up by twos, which must lie in one run.
template <size_t kVectors>
bool AllowPairs(const NhwcTile& tile) {
  if (tile.runs > 1 && tile.run_quads % 2 == 1) return false;
  const size_t quads = tile.runs * tile.run_quads;
  return Rests(tile.rests, quads).allow_pairs() &&
         Rests(tile.rests + (kVectors - 1) * tile.rest_bytes, quads).allow_pairs();
}

template <size_t kPixels, size_t kVectors>
TENON_AVX2 void RunBytes(const NhwcTile& tile, size_t count) {
  TileSums<kPixels, kVectors> acc(tile);
  const int8_t* weights = tile.weights;
  const bool has_pairs = AllowPairs<kVectors>(tile);
  constexpr size_t kQuadBytes = kVectors * kRestVector;  // of weights
  for (size_t run = 0; run < tile.runs; ++run) {
    const uint8_t* pixels[kPixels];
#pragma GCC unroll 6
    for (size_t p = 0; p < kPixels; ++p) {
      pixels[p] = tile.pixels[p] + tile.offsets[run * tile.run_quads];
    }
    size_t at = 0;
    const size_t end = tile.run_quads * kQuad;
    for (; has_pairs && at + 2 * kQuad <= end; at += 2 * kQuad, weights += 2 * kQuadBytes) {
#pragma GCC unroll 6
      for (size_t p = 0; p < kPixels; ++p) {
        const __m256i first = BroadcastQuad(pixels[p] + at);
        const __m256i second = BroadcastQuad(pixels[p] + at + kQuad);
#pragma GCC unroll 2
        for (size_t v = 0; v < kVectors; ++v) {
          const int8_t* const own = weights + v * kRestVector;
          acc.sums[p][v] = AddTwoQuads(acc.sums[p][v], first, LoadVector(own), second,
                                       LoadVector(own + kQuadBytes));
        }
      }
    }
    for (; at < end; at += kQuad, weights += kQuadBytes) {
#pragma GCC unroll 6
      for (size_t p = 0; p < kPixels; ++p) {
        const __m256i quad = BroadcastQuad(pixels[p] + at);
#pragma GCC unroll 2
        for (size_t v = 0; v < kVectors; ++v) {
          acc.sums[p][v] = AddQuads(acc.sums[p][v], quad, LoadVector(weights + v * kRestVector));
        }
      }
    }
  }
#pragma GCC unroll 2
  for (size_t v = 0; v < kVectors; ++v) {
    const Rests rests(tile.rests + v * tile.rest_bytes, tile.runs * tile.run_quads);
    for (size_t i = 0; i < rests.count(); ++i) {
      const ptrdiff_t at = tile.offsets[rests.quad(i)];
      const __m256i rest = LoadVector(rests.weights(i));
#pragma GCC unroll 6
      for (size_t p = 0; p < kPixels; ++p) {
        acc.sums[p][v] = AddQuads(acc.sums[p][v], BroadcastQuad(tile.pixels[p] + at), rest);
      }
    }
  }
  acc.Store(tile, count);
}

// The same for pixels that are words, and weights as JoinPairs leaves them.
template <size_t kPixels, size_t kVectors>
TENON_AVX2 void RunWords(const NhwcTile& tile, size_t count) {
  TileSums<kPixels, kVectors> acc(tile);
  const int8_t* weights = tile.weights;
  for (size_t run = 0; run < tile.runs; ++run) {
    const uint8_t* pixels[kPixels];
#pragma GCC unroll 6
    for (size_t p = 0; p < kPixels; ++p) {
      pixels[p] = tile.pixels[p] + 2 * tile.offsets[run * tile.run_quads];
    }
    for (size_t at = 0; at < 2 * tile.run_quads * kQuad; at += 4, weights += kVectors * kPairs) {
      __m256i pairs[kVectors];
#pragma GCC unroll 2
      for (size_t v = 0; v < kVectors; ++v) {
        pairs[v] = WordsAt(weights + v * kPairs);
      }
#pragma GCC unroll 6
      for (size_t p = 0; p < kPixels; ++p) {
        const __m256i pair = BroadcastQuad(pixels[p] + at);  // of bytes
#pragma GCC unroll 2
        for (size_t v = 0; v < kVectors; ++v) {
          acc.sums[p][v] = _mm256_add_epi32(acc.sums[p][v], _mm256_madd_epi16(pair, pairs[v]));
        }
      }
    }
  }
  acc.Store(tile, count);
}

bool ReadsWords(const std::byte* rests, size_t quads) { return Rests(rests, quads).are_too_many(); }

// The functions compute pairs of pixels.
using RunPairs = void (*)(const NhwcTile& tile, size_t count);
constexpr RunPairs kRunPairs[2][2][kMostPixels / 2] = {  // [words][wide]
    {{&RunBytes<2, 1>, &RunBytes<4, 1>, &RunBytes<6, 1>},
     {&RunBytes<2, 2>, &RunBytes<4, 2>, &RunBytes<6, 2>}},
    {{&RunWords<2, 1>, &RunWords<4, 1>, &RunWords<6, 1>},
     {&RunWords<2, 2>, &RunWords<4, 2>, &RunWords<6, 2>}}};

void RunTile(const NhwcTile& tile, size_t pixels, bool is_wide) {
  const RunPairs run = kRunPairs[tile.reads_words][is_wide][(pixels - 1) / 2];
  if (pixels % 2 == 0) return run(tile, pixels);
  const uint8_t* windows[kMostPixels];
  std::copy_n(tile.pixels, pixels, windows);
  windows[pixels] = windows[pixels - 1];
  NhwcTile even = tile;
  even.pixels = windows;
  run(even, pixels);
}

TENON_AVX2 void PackWeights(const NhwcWeightChunk& chunk) {
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(chunk.flip));
  const __m256i ones = _mm256_set1_epi8(1);
  int8_t* into = chunk.into;
  __m256i sums = LoadInts(chunk.sums);
  for (size_t first = 0; first < chunk.bytes; first += kRestVector) {
    const size_t present = std::min(kRestVector, chunk.bytes - first);
    __m256i quads[kLanes];
    for (size_t j = 0; j < kLanes; ++j) {
      // Absent bytes become zeros when they are flipped.
      uint8_t bytes[kRestVector];
      std::memset(bytes, chunk.flip, sizeof(bytes));
      if (j < chunk.count) std::memcpy(bytes, chunk.rows[j] + first, present);
      quads[j] = _mm256_xor_si256(LoadVector(bytes), flip);
    }
    TransposeLanes(quads);
    for (size_t i = 0; i * kQuad < present; ++i, into += chunk.quad_distance) {
      sums = AddQuads(sums, ones, quads[i]);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(into), quads[i]);
    }
  }
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(chunk.sums), sums);
}

void FinishPanel(int8_t* weights, size_t quads, size_t vectors, const std::byte* rests) {
  FitPanel(weights, quads, vectors, rests, true);
}

TENON_AVX2 size_t InterleaveWhole(const uint8_t* const (&rows)[kInterleavedRows], size_t count,
                                  uint8_t flip_byte, uint8_t* out) {
  const __m256i flip = _mm256_set1_epi8(static_cast<char>(flip_byte));
  size_t i = 0;
  for (; i + 32 <= count; i += 32, out += 128) {
    __m256i r[kInterleavedRows];
#pragma GCC unroll 4
    for (size_t k = 0; k < kInterleavedRows; ++k) {
      r[k] = _mm256_xor_si256(LoadVector(rows[k] + i), flip);
    }
    const __m256i low01 = _mm256_unpacklo_epi8(r[0], r[1]);
    const __m256i high01 = _mm256_unpackhi_epi8(r[0], r[1]);
    const __m256i low23 = _mm256_unpacklo_epi8(r[2], r[3]);
    const __m256i high23 = _mm256_unpackhi_epi8(r[2], r[3]);
    // Elements 16 l + 4 j + [0, 4) in the 128 bits l of vector j.
    const __m256i j0 = _mm256_unpacklo_epi16(low01, low23);
    const __m256i j1 = _mm256_unpackhi_epi16(low01, low23);
    const __m256i j2 = _mm256_unpacklo_epi16(high01, high23);
    const __m256i j3 = _mm256_unpackhi_epi16(high01, high23);
    auto* const into = reinterpret_cast<__m256i*>(out);
    _mm256_storeu_si256(into, _mm256_permute2x128_si256(j0, j1, 0x20));
    _mm256_storeu_si256(into + 1, _mm256_permute2x128_si256(j2, j3, 0x20));
    _mm256_storeu_si256(into + 2, _mm256_permute2x128_si256(j0, j1, 0x31));
    _mm256_storeu_si256(into + 3, _mm256_permute2x128_si256(j2, j3, 0x31));
  }
  return i;
}

// Quads of signed or unsigned bytes as words: elements 0 and 2, 1 and 3.
struct QuadWords {
  __m256i even, odd;
};
TENON_AVX2 QuadWords WordsOfSigned(__m256i quads) {
  return {_mm256_srai_epi16(_mm256_slli_epi16(quads, 8), 8), _mm256_srai_epi16(quads, 8)};
}
TENON_AVX2 QuadWords WordsOfUnsigned(__m256i quads) {
  return {_mm256_and_si256(quads, _mm256_set1_epi16(0xff)), _mm256_srli_epi16(quads, 8)};
}
// sum + the products of quads, of any weights.
TENON_AVX2 __m256i AddQuadWords(__m256i sum, const QuadWords& a, const QuadWords& b) {
  return _mm256_add_epi32(
      sum, _mm256_add_epi32(_mm256_madd_epi16(a.even, b.even), _mm256_madd_epi16(a.odd, b.odd)));
}

// kPanel channels from `first` on, at all pixels of the row. With kTaps, there are so many.
template <size_t kTaps>
TENON_AVX2 void RunChannels(const NhwcDepthwiseRow& row, size_t first, size_t count) {
  QuadWords weights[kTaps > 0 ? kTaps : kMostTaps][2];
  const size_t taps = kTaps > 0 ? kTaps : row.bands_count * row.kernel_width;
  for (size_t t = 0; t < taps; ++t) {
    for (size_t v = 0; v < 2; ++v) {
      weights[t][v] = WordsOfSigned(LoadVector(row.weights + t * row.weight_stride +
                                               (first + v * kLanes) * kInterleavedRows));
    }
  }
  const Rounding rounding = MakeRounding(row.scales + first, row.zero_point, row.is_signed);
  const __m256i starts[2] = {LoadInts(row.starts + first), LoadInts(row.starts + first + kLanes)};
  const uint8_t* pixel = row.bands + first * kInterleavedRows;
  uint8_t* out = row.out + first;
  for (size_t x = 0; x < row.width; ++x, pixel += row.step, out += row.channels) {
    __m256i acc[2] = {starts[0], starts[1]};
    const auto add_tap = [&](const uint8_t* at, const QuadWords(&tap)[2]) TENON_AVX2 {
#pragma GCC unroll 2
      for (size_t v = 0; v < 2; ++v) {
        acc[v] = AddQuadWords(acc[v], WordsOfUnsigned(LoadVector(at + v * kRestVector)), tap[v]);
      }
    };
    if constexpr (kTaps > 0) {
#pragma GCC unroll 3
      for (size_t t = 0; t < kTaps; ++t) add_tap(pixel + t * row.tap_stride, weights[t]);
    } else {
      const QuadWords(*tap)[2] = weights;
      const uint8_t* band = pixel;
      for (size_t b = 0; b < row.bands_count; ++b, band += row.band_bytes) {
        const uint8_t* at = band;
        for (size_t t = 0; t < row.kernel_width; ++t, at += row.tap_stride) add_tap(at, *tap++);
      }
    }
    const __m256i words = RoundRow<true>(acc[0], acc[1], rounding);
    const __m256i bytes = BytesOfRows(words, words, row.is_signed);
    StoreChannels(_mm256_castsi256_si128(bytes), out, count);
  }
}

void RunDepthwiseRow(const NhwcDepthwiseRow& row) {
  const bool has_three = row.bands_count == 1 && row.kernel_width == 3;
  for (size_t first = 0; first < row.channels; first += kPanel) {
    const size_t count = std::min(kPanel, row.channels - first);
    if (has_three) {
      RunChannels<3>(row, first, count);
    } else {
      RunChannels<0>(row, first, count);
    }
  }
}

constexpr NhwcForm kForm = {.lanes = kLanes,
                            .panel = kPanel,
                            .most_pixels = kMostPixels,
                            .run_tile = &RunTile,
                            .rest_bytes = &Rests::Bytes,
                            .pack_weights = &PackWeights,
                            .finish_panel = &FinishPanel,
                            .reads_words = &ReadsWords,
                            .widen = &WidenBytes,
                            .interleave = &InterleaveWhole,
                            .most_taps = kMostTaps,
                            .run_depthwise_row = &RunDepthwiseRow};

}  // namespace

const NhwcForm* Avx2NhwcForm() { return &kForm; }

}  // namespace tenon::kernels

#endif
