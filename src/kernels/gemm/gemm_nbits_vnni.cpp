#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "kernels/dispatch.h"
#include "kernels/gemm/gemm_nbits.h"

#if defined(__x86_64__)
#include "kernels/gemm/round_block_avx512.h"
#include "kernels/transpose_avx512.h"
#endif

namespace tenon::kernels {
namespace {

constexpr size_t kColumns = kNBitsPanelColumns;

size_t RoundUp64(size_t x) { return (x + 63) / 64 * 64; }
size_t Depth(const NBitsMatrix& w) { return w.blocks() * w.block_size; }
// An odd number of cache lines, so that the rows of a tile lie in different sets of the cache.
size_t RowStride(const NBitsMatrix& w, NBitsParts parts) {
  return (Depth(w) * static_cast<size_t>(parts) + 127) / 128 * 128 + 64;
}

// Unpacked weights: quads of the depth, [depth / 4][kColumns][4]; for each block and column the
// scale, and what its sum starts from.
struct Panel {
  int8_t* weights;
  float* scales;
  int32_t* starts;

  Panel(const NBitsMatrix& w, std::byte* memory)
      : weights(reinterpret_cast<int8_t*>(memory)),
        scales(reinterpret_cast<float*>(memory + Depth(w) * kColumns)),
        starts(reinterpret_cast<int32_t*>(scales + w.blocks() * kColumns)) {}
};

}  // namespace

size_t NBitsPanelBytes(const NBitsMatrix& w) {
  return RoundUp64(kColumns * (Depth(w) + w.blocks() * (sizeof(float) + sizeof(int32_t))));
}

size_t Int8NBitsRows::Bytes(const NBitsMatrix& w, NBitsParts parts, size_t m) {
  return RoundUp64(m * (RowStride(w, parts) + w.blocks() * sizeof(float)));
}

Int8NBitsRows::Int8NBitsRows(const NBitsMatrix& w, NBitsParts parts, size_t m, std::byte* memory)
    : parts_(parts),
      count_(m),
      blocks_(w.blocks()),
      stride_(RowStride(w, parts)),
      bytes_(reinterpret_cast<uint8_t*>(memory)),
      scales_(reinterpret_cast<float*>(memory + m * stride_)) {}

#if defined(__x86_64__)

namespace {

#define TENON_VNNI __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni,fma")))

constexpr size_t kMostRows = 7;
constexpr size_t kLanes = 16;  // of 32 bits
constexpr size_t kChunk = 64;  // elements that are unpacked together
constexpr size_t kQuads = kChunk / 4;

// --- Unpacking weights ---

constexpr uint64_t FirstBits(size_t n) { return n >= 64 ? ~uint64_t{0} : (uint64_t{1} << n) - 1; }

// `count` elements from packed ones, in order; the others are undefined.
template <size_t kBits>
TENON_VNNI __m512i LoadElements(const uint8_t* packed, size_t count) {
  const uint64_t bytes = FirstBits(count * kBits / 8);
  if constexpr (kBits == 8) {
    return _mm512_maskz_loadu_epi8(bytes, packed);
  } else if constexpr (kBits == 4) {
    const __m256i some = _mm256_maskz_loadu_epi8(static_cast<__mmask32>(bytes), packed);
    const __m512i words = _mm512_maskz_cvtepu8_epi16(~__mmask32{0}, some);
    return _mm512_and_si512(_mm512_or_si512(words, _mm512_slli_epi16(words, 4)),
                            _mm512_set1_epi8(15));
  } else {
    static_assert(kBits == 2);
    const __m128i some = _mm_maskz_loadu_epi8(static_cast<__mmask16>(bytes), packed);
    const __m512i x = _mm512_maskz_cvtepu8_epi32(kAll32, some);
    const __m512i low = _mm512_or_si512(x, _mm512_maskz_slli_epi32(kAll32, x, 6));
    const __m512i high = _mm512_or_si512(_mm512_maskz_slli_epi32(kAll32, x, 12),
                                         _mm512_maskz_slli_epi32(kAll32, x, 18));
    return _mm512_and_si512(_mm512_or_si512(low, high), _mm512_set1_epi8(3));
  }
}

// The zero points of 64 elements of a row from element `first` on, a multiple of 64.
TENON_VNNI __m512i ZeroPointsOf(const NBitsMatrix& w, size_t row, size_t first) {
  if (w.zero_points == nullptr) {
    return _mm512_set1_epi8(static_cast<char>(1u << (w.bits - 1)));
  }
  alignas(64) int8_t zeros[kChunk] = {};
  for (size_t i = 0; i < kChunk; i += 16) {
    const size_t block = (first + i) / w.block_size;
    if (block >= w.blocks()) break;
    std::memset(zeros + i, static_cast<int>(w.ZeroPoint(row, block)), 16);
  }
  return _mm512_load_si512(zeros);
}

// Fills `kLanes` columns of a panel from column `into` on with rows [first, first + count) of w.
template <size_t kBits>
TENON_VNNI void UnpackColumns(const NBitsMatrix& w, size_t first, size_t count, size_t into,
                              const Panel& panel) {
  const size_t depth = Depth(w), row_bytes = depth * kBits / 8;
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(128));
  __m512i sums = _mm512_setzero_si512();
  for (size_t p = 0; p < depth; p += kChunk) {
    const size_t present = std::min(kChunk, depth - p);
    __m512i quads[kLanes];
    for (size_t j = 0; j < kLanes; ++j) {
      quads[j] = _mm512_setzero_si512();
      if (j >= count) continue;
      const uint8_t* at = w.data + (first + j) * row_bytes + p * kBits / 8;
      quads[j] = _mm512_sub_epi8(LoadElements<kBits>(at, present), ZeroPointsOf(w, first + j, p));
    }
    TransposeLanes(quads);
    for (size_t q = 0; q < kQuads && q * 4 < present; ++q) {
      _mm512_storeu_si512(panel.weights + ((p / 4 + q) * kColumns + into) * 4, quads[q]);
      sums = _mm512_dpbusd_epi32(sums, offset, quads[q]);
      const size_t end = p + (q + 1) * 4;
      if (end % w.block_size != 0) continue;
      // Takes away what the 128 of the rows' bytes will add.
      _mm512_storeu_si512(panel.starts + (end / w.block_size - 1) * kColumns + into,
                          _mm512_sub_epi32(_mm512_setzero_si512(), sums));
      sums = _mm512_setzero_si512();
    }
  }
}

void UnpackScales(const NBitsMatrix& w, size_t first, size_t count, const Panel& panel) {
  const size_t blocks = w.blocks();
  if (count < kColumns) std::fill_n(panel.scales, blocks * kColumns, 0.0f);
  for (size_t j = 0; j < count; ++j) {
    const float* scales = w.scales + (first + j) * blocks;
    for (size_t b = 0; b < blocks; ++b) panel.scales[b * kColumns + j] = scales[b];
  }
}

void UnpackPanel(const NBitsMatrix& w, size_t first, size_t count, const Panel& panel) {
  const auto unpack = w.bits == 2   ? &UnpackColumns<2>
                      : w.bits == 4 ? &UnpackColumns<4>
                                    : &UnpackColumns<8>;
  for (size_t into = 0; into < kColumns; into += kLanes) {
    const size_t there = count > into ? std::min(kLanes, count - into) : 0;
    unpack(w, first + into, there, into, panel);
  }
  UnpackScales(w, first, count, panel);
}

// --- Products ---

// Adds the products of one part of a block.
template <size_t kRows>
TENON_VNNI inline __attribute__((always_inline)) void AddPart(const uint8_t* a, size_t stride,
                                                              size_t block_size,
                                                              const int8_t* weights,
                                                              __m512i (&acc)[kRows][2]) {
  for (size_t p = 0; p < block_size; p += 4, weights += 4 * kColumns, a += 4) {
    const __m512i b0 = _mm512_loadu_si512(weights);
    const __m512i b1 = _mm512_loadu_si512(weights + 64);
#pragma GCC unroll 7
    for (size_t r = 0; r < kRows; ++r) {
      int32_t four;
      std::memcpy(&four, a + r * stride, sizeof(four));
      const __m512i quad = _mm512_set1_epi32(four);
      acc[r][0] = _mm512_dpbusd_epi32(acc[r][0], quad, b0);
      acc[r][1] = _mm512_dpbusd_epi32(acc[r][1], quad, b1);
    }
  }
}

template <size_t kRows, NBitsParts kParts>
TENON_VNNI void RunTile(const uint8_t* a, size_t stride, const float* a_scales, size_t blocks,
                        size_t block_size, const Panel& panel, float* total) {
  __m512 sums[kRows][2];
#pragma GCC unroll 7
  for (size_t r = 0; r < kRows; ++r) sums[r][0] = sums[r][1] = _mm512_setzero_ps();
  const int8_t* weights = panel.weights;
  for (size_t block = 0; block < blocks; ++block) {
    __m512i acc[kRows][2];
    const __m512i low_start = _mm512_loadu_si512(panel.starts + block * kColumns);
    const __m512i high_start = _mm512_loadu_si512(panel.starts + block * kColumns + kLanes);
#pragma GCC unroll 7
    for (size_t r = 0; r < kRows; ++r) {
      acc[r][0] = low_start;
      acc[r][1] = high_start;
    }
    AddPart<kRows>(a, stride, block_size, weights, acc);
    a += block_size;
    for (size_t part = 1; part < static_cast<size_t>(kParts); ++part) {
      constexpr unsigned kBits = kParts == NBitsParts::kTwo ? 8 : 7;
#pragma GCC unroll 7
      for (size_t r = 0; r < kRows; ++r) {
        acc[r][0] = _mm512_maskz_slli_epi32(kAll32, acc[r][0], kBits);
        acc[r][1] = _mm512_maskz_slli_epi32(kAll32, acc[r][1], kBits);
      }
      AddPart<kRows>(a, stride, block_size, weights, acc);
      a += block_size;
    }
    weights += block_size * kColumns;
    const __m512 low = _mm512_loadu_ps(panel.scales + block * kColumns);
    const __m512 high = _mm512_loadu_ps(panel.scales + block * kColumns + kLanes);
#pragma GCC unroll 7
    for (size_t r = 0; r < kRows; ++r) {
      const __m512 a_scale = _mm512_set1_ps(a_scales[r * blocks + block]);
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

#undef TENON_VNNI

template <NBitsParts kParts, size_t... kRows>
constexpr auto TileFunctions(std::index_sequence<kRows...>) {
  return std::array{&RunTile<kRows + 1, kParts>...};
}
constexpr auto kRowCounts = std::make_index_sequence<kMostRows>();
// [parts - 1][rows - 1]
constexpr std::array kTiles = {TileFunctions<NBitsParts::kOne>(kRowCounts),
                               TileFunctions<NBitsParts::kTwo>(kRowCounts),
                               TileFunctions<NBitsParts::kThree>(kRowCounts)};

}  // namespace

bool HasInt8NBitsPanels(const NBitsMatrix& w, NBitsParts parts) {
  // Sums of a block are less than 2^(7 + bits) times its elements before they are shifted.
  const size_t shift = parts == NBitsParts::kTwo ? 8 : parts == NBitsParts::kThree ? 14 : 0;
  if (parts != NBitsParts::kOne && w.block_size << (w.bits + 7 + shift) > size_t{1} << 31) {
    return false;
  }
  // The difference of 8 bits and any zero point does not fit in a byte.
  const bool has_bytes = w.float_zero_points == nullptr && (w.bits < 8 || w.zero_points == nullptr);
  return has_bytes && ActiveTarget() == Target::kAvx512 && __builtin_cpu_supports("avx512vnni");
}

void Int8NBitsRows::Set(const NBitsMatrix& w, size_t i, const float* x) const {
  uint8_t* bytes = bytes_ + i * stride_;
  for (size_t block = 0; block < blocks_; ++block) {
    const size_t first = block * w.block_size, count = std::min(w.block_size, w.k - first);
    float& scale = scales_[i * blocks_ + block];
    const auto parts = static_cast<size_t>(parts_);
    scale = parts == 1 ? RoundBlock(x + first, count, reinterpret_cast<int8_t*>(bytes))
                       : RoundBlockInParts(x + first, count, parts, bytes, w.block_size);
    for (size_t part = 0; count < w.block_size && part < parts; ++part) {
      std::memset(bytes + part * w.block_size + count, 0, w.block_size - count);
    }
    for (size_t p = 0; p < w.block_size; ++p) bytes[p] ^= 0x80;
    bytes += w.block_size * parts;
  }
}

void RunNBitsPanel(const NBitsMatrix& w, const Int8NBitsRows& rows, const float* bias, size_t first,
                   float* y, size_t n, std::byte* scratch) {
  const size_t count = std::min(kColumns, n - first), m = rows.count();
  const Panel panel(w, scratch);
  UnpackPanel(w, first, count, panel);
  // Tiles of nearly equal numbers of rows.
  const size_t tiles = (m + kMostRows - 1) / kMostRows;
  for (size_t tile = 0, row = 0; tile < tiles; ++tile) {
    const size_t tile_rows = (m - row + tiles - tile - 1) / (tiles - tile);
    alignas(64) float total[kMostRows * kColumns];
    const auto& functions = kTiles[static_cast<size_t>(rows.parts()) - 1];
    functions[tile_rows - 1](rows.bytes(row), rows.stride(), rows.scales(row), w.blocks(),
                             w.block_size, panel, total);
    for (size_t r = 0; r < tile_rows; ++r, ++row) {
      float* into = y + row * n + first;
      const float* from = total + r * kColumns;
      for (size_t j = 0; j < count; ++j) into[j] = from[j] + (bias ? bias[first + j] : 0);
    }
  }
}

#else

bool HasInt8NBitsPanels(const NBitsMatrix&, NBitsParts) { return false; }
void Int8NBitsRows::Set(const NBitsMatrix&, size_t, const float*) const {}
void RunNBitsPanel(const NBitsMatrix&, const Int8NBitsRows&, const float*, size_t, float*, size_t,
                   std::byte*) {}

#endif

}  // namespace tenon::kernels
