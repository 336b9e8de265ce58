// The register tile of the blocked convolutions: up to kTileBlocks blocks of 16 output channels by
// up to kTilePixels output pixels stay in registers while all taps are summed.

#if defined(TENON_KERNELS_CONV_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_CONV_TILE_INL_H_
#undef TENON_KERNELS_CONV_TILE_INL_H_
#else
#define TENON_KERNELS_CONV_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "kernels/conv/block16-inl.h"
#include "kernels/conv/conv_tile.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

// Sums plus one block of weights and one broadcast input must fit the registers: 28 + 2 + 1 of 32
// for AVX-512, 12 + 2 + 1 of 16 for AVX2, and 12 of 16 for SSE4, which has no FMA and needs one for
// the product. Engines of WebAssembly spill more than 8.
#if HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM
constexpr size_t kSumVectors = 28;
#elif HWY_ARCH_WASM
constexpr size_t kSumVectors = 8;
#else
constexpr size_t kSumVectors = 12;
#endif
// Of weights, which come from L2; 0: fetching them ahead costs more than it gains.
#if HWY_TARGET <= HWY_AVX3
constexpr size_t kRowsAhead = 32;
#else
constexpr size_t kRowsAhead = 0;
#endif
// The next plane lies far away and is fetched ahead, unless fewer taps say that it is a stem's; 0:
// to look costs more than it gains.
constexpr size_t kFarDepth = HWY_TARGET <= HWY_AVX3 ? 8 : 0;
constexpr size_t kTileBlocks = kSumVectors / Block::kVectors >= 14 ? 2 : 1;

// Pixels of a tile whose blocks have kChannels channels. A half block is computed alone.
template <size_t kChannels>
constexpr size_t kTilePixelsOf = std::min(kMaxTilePixels,
                                          kSumVectors / BlockOf<kChannels>::kVectors /
                                              (kChannels == kChannelBlock ? kTileBlocks : 1));
constexpr size_t kTilePixels = kTilePixelsOf<kChannelBlock>;
static_assert(kTileBlocks <= kMaxTileBlocks);

// Input of pixel p and tap column s, a constant distance apart.
template <size_t kStride>
struct StridedPixels {
  template <size_t kPixels>
  struct Row {
    const float* base;
    HWY_INLINE Row(const ConvTile& tile, const float* row, size_t column)
        : base(row + tile.column_offset + static_cast<ptrdiff_t>(column) * tile.column_stride) {}
    HWY_INLINE const float* At(size_t pixel) const { return base + pixel * kStride; }
  };
};

// Input of pixel p and tap column s through a table, for odd strides and tiles at the border: a
// negative offset means a zero pixel.
struct TabulatedPixels {
  template <size_t kPixels>
  struct Row {
    const float* pixels[kPixels];
    HWY_INLINE Row(const ConvTile& tile, const float* row, size_t column) {
      const int32_t* offsets = tile.pixel_offsets + column * kPixels;
      for (size_t p = 0; p < kPixels; ++p) {
        pixels[p] = offsets[p] < 0 ? kZeroPixel : row + offsets[p];
      }
    }
    HWY_INLINE const float* At(size_t pixel) const { return pixels[pixel]; }
  };
};

template <class B, size_t kBlocks, size_t kPixels>
HWY_INLINE void InitSums(const ConvTile& tile, B (&sums)[kBlocks][kPixels]) {
  HWY_UNROLL(2)
  for (size_t b = 0; b < kBlocks; ++b) {
    const B bias = tile.bias ? LoadBlock<B>(tile.bias + b * kChannelBlock) : SetBlock<B>(0);
    HWY_UNROLL(16)
    for (size_t p = 0; p < kPixels; ++p) sums[b][p] = bias;
  }
  if (!tile.addend) return;
  HWY_UNROLL(2)
  for (size_t b = 0; b < kBlocks; ++b) {
    const float* addend = tile.addend + b * tile.out_block_stride;
    HWY_UNROLL(16)
    for (size_t p = 0; p < kPixels; ++p) {
      sums[b][p] = AddBlocks(sums[b][p], LoadBlock<B>(addend + p * kChannelBlock));
    }
  }
}

template <class B, size_t kBlocks, size_t kPixels>
HWY_INLINE void StoreSums(const ConvTile& tile, const B (&sums)[kBlocks][kPixels]) {
  const Clamp<B> clamp(tile.low, tile.high);
  HWY_UNROLL(2)
  for (size_t b = 0; b < kBlocks; ++b) {
    float* out = tile.out + b * tile.out_block_stride;
    const B mask = LoadBlock<B>(tile.masks + b * kChannelBlock);
    HWY_UNROLL(16)
    for (size_t p = 0; p < kPixels; ++p) {
      StoreBlock(AndBlocks(clamp(sums[b][p]), mask), out + p * kChannelBlock);
    }
  }
}

template <class Pixels, size_t kChannels, size_t kBlocks, size_t kPixels>
void RunTile(const ConvTile& tile) {
  using B = BlockOf<kChannels>;
  B sums[kBlocks][kPixels];
  InitSums(tile, sums);
  for (size_t i = 0; i < tile.planes; ++i) {
    const size_t depth = i + 1 == tile.planes ? tile.last_depth : tile.depth;
    for (size_t r = 0; r < tile.rows; ++r) {
      const float* row = tile.in + static_cast<ptrdiff_t>(i) * tile.plane_stride +
                         static_cast<ptrdiff_t>(r) * tile.row_stride;
      const float* weights = tile.weights + i * tile.weights_plane_stride +
                             r * tile.weights_row_stride + tile.column_weights;
      for (size_t s = 0; s < tile.columns; ++s) {
        const typename Pixels::template Row<kPixels> pixels(tile, row, s);
        if (i + 1 < tile.planes && (kFarDepth == 0 || depth >= kFarDepth)) {
          HWY_UNROLL(16)
          for (size_t p = 0; p < kPixels; ++p) hwy::Prefetch(pixels.At(p) + tile.plane_stride);
        }
        for (size_t k = 0; k < depth; ++k) {
          B w[kBlocks];
          HWY_UNROLL(2)
          for (size_t b = 0; b < kBlocks; ++b) {
            w[b] = LoadBlock<B>(weights + b * tile.weights_block_stride + k * kChannels);
            if constexpr (kRowsAhead > 0) {
              hwy::Prefetch(weights + b * tile.weights_block_stride + (k + kRowsAhead) * kChannels);
            }
          }
          HWY_UNROLL(16)
          for (size_t p = 0; p < kPixels; ++p) {
            const auto x = hn::Set(typename B::D(), pixels.At(p)[k]);
            HWY_UNROLL(2)
            for (size_t b = 0; b < kBlocks; ++b) MulAddBlock(x, w[b], sums[b][p]);
          }
        }
        weights += tile.depth * kChannels;
      }
    }
  }
  StoreSums(tile, sums);
}

// Where tiles are small, the loops around 16 steps cost a tenth. WebAssembly's engines have no
// registers for the unrolled steps.
constexpr bool kHasPointTile = kTileBlocks == 1 && !HWY_ARCH_WASM;

// The same for one tap and one block, as most products of light networks are.
template <size_t kPixels>
void RunPointTile(const ConvTile& tile) {
  constexpr size_t kSteps = 4;
  Block sums[1][kPixels];
  InitSums(tile, sums);
  const float* HWY_RESTRICT in = tile.in + tile.column_offset;
  const float* HWY_RESTRICT weights = tile.weights + tile.column_weights;
  const auto step = [&](const float* HWY_RESTRICT x, const float* HWY_RESTRICT w) HWY_ATTR
      __attribute__((always_inline)) {
    const Block of_step = LoadBlock(w);
    HWY_UNROLL(16)
    for (size_t p = 0; p < kPixels; ++p) {
      MulAddBlock(hn::Set(DBlock(), x[p * kChannelBlock]), of_step, sums[0][p]);
    }
  };
  for (size_t left = tile.planes; left > 0; --left) {
    size_t depth = tile.depth;
    if (left > 1) {
      HWY_UNROLL(16)
      for (size_t p = 0; p < kPixels; ++p) {
        hwy::Prefetch(in + tile.plane_stride + p * kChannelBlock);
      }
    } else {
      depth = tile.last_depth;
    }
    const float* x = in;
    const float* w = weights;
    for (; depth >= kSteps; depth -= kSteps, x += kSteps, w += kSteps * kChannelBlock) {
      HWY_UNROLL(4)
      for (size_t k = 0; k < kSteps; ++k) step(x + k, w + k * kChannelBlock);
    }
    for (; depth > 0; --depth, ++x, w += kChannelBlock) step(x, w);
    in += tile.plane_stride;
    weights += tile.weights_plane_stride;
  }
  StoreSums(tile, sums);
}

using TileFunction = void (*)(const ConvTile&);
template <size_t kChannels>
using TileRow = std::array<TileFunction, kTilePixelsOf<kChannels>>;

template <class Pixels, size_t kChannels, size_t kBlocks, size_t... kIndex>
constexpr TileRow<kChannels> MakeTileRow(std::index_sequence<kIndex...>) {
  return {&RunTile<Pixels, kChannels, kBlocks, kIndex + 1>...};
}

// The tile functions for one way to address pixels, by pixels - 1.
template <class Pixels, size_t kChannels, size_t kBlocks>
constexpr TileRow<kChannels> kTileRow =
    MakeTileRow<Pixels, kChannels, kBlocks>(std::make_index_sequence<kTilePixelsOf<kChannels>>());

// Runs `blocks` (1 or 2) output blocks of a tile of at most kTilePixels pixels.
template <class Pixels>
HWY_INLINE void RunTileBlocks(const ConvTile& tile, size_t blocks, size_t pixels) {
  if (kTileBlocks > 1 && blocks == kTileBlocks) {
    return kTileRow<Pixels, kChannelBlock, kTileBlocks>[pixels - 1](tile);
  }
  TileFunction run = kTileRow<Pixels, kChannelBlock, 1>[pixels - 1];
  if constexpr (kHasPointTile && std::is_same_v<Pixels, StridedPixels<kChannelBlock>>) {
    const bool is_point = tile.rows == 1 && tile.columns == 1;
    if (is_point && pixels == kTilePixels) run = &RunPointTile<kTilePixels>;
    if (is_point && pixels + 1 == kTilePixels) run = &RunPointTile<kTilePixels - 1>;
  }
  if (blocks == 1) return run(tile);
  ConvTile one = tile;
  for (size_t b = 0; b < blocks; ++b) {
    run(one);
    one.weights += one.weights_block_stride;
    if (one.bias) one.bias += kChannelBlock;
    if (one.addend) one.addend += one.out_block_stride;
    one.out += one.out_block_stride;
    one.masks += kChannelBlock;
  }
}

// Runs one half block: 8 channels, whose pixels are still kChannelBlock floats apart.
template <class Pixels>
HWY_INLINE void RunHalfTile(const ConvTile& tile, size_t pixels) {
  kTileRow<Pixels, kChannelBlock / 2, 1>[pixels - 1](tile);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif
