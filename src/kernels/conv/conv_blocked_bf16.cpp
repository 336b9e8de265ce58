#include "kernels/conv/conv_blocked_bf16.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <utility>

#include "kernels/conv/conv_blocked-inl.h"
#include "kernels/gemm/gemm_bf16.h"

#if defined(__x86_64__) && defined(__linux__)
#include "kernels/bf16_avx512.h"
#endif

namespace tenon::kernels {
namespace {

// What a pixel of a block takes.
constexpr size_t kPairs = kChannelBlock / 2;

}  // namespace

#if defined(__x86_64__) && defined(__linux__)

namespace {

// `pixels` pixels of a block, of whose channels the first `channels` are real.
TENON_BF16 void RoundPixels(const float* in, size_t pixels, size_t channels, float* rounded) {
  const auto real = static_cast<__mmask16>((1u << channels) - 1);
  for (size_t p = 0; p < pixels; p += 2, in += 2 * kChannelBlock, rounded += 2 * kPairs) {
    const bool has_second = p + 1 < pixels;
    const __m512 first = _mm512_maskz_loadu_ps(real, in);
    const __m512 second =
        _mm512_maskz_loadu_ps(static_cast<__mmask16>(has_second ? real : 0), in + kChannelBlock);
    _mm512_mask_storeu_epi32(rounded, static_cast<__mmask16>(has_second ? 0xffff : 0xff),
                             RoundToBf16(first, second));
  }
}

// The register tile of conv_tile-inl.h for pairs.
template <class Pixels, size_t kBlocks, size_t kPixels>
TENON_BF16 void RunPairTile(const ConvTile& tile) {
  __m512 sums[kBlocks][kPixels];
#pragma GCC unroll 2
  for (size_t b = 0; b < kBlocks; ++b) {
    const __m512 bias =
        tile.bias ? _mm512_loadu_ps(tile.bias + b * kChannelBlock) : _mm512_setzero_ps();
#pragma GCC unroll 16
    for (size_t p = 0; p < kPixels; ++p) sums[b][p] = bias;
  }
  if (tile.addend) {
#pragma GCC unroll 2
    for (size_t b = 0; b < kBlocks; ++b) {
      const float* from = tile.addend + b * tile.out_block_stride;
#pragma GCC unroll 16
      for (size_t p = 0; p < kPixels; ++p) sums[b][p] += _mm512_loadu_ps(from + p * kChannelBlock);
    }
  }
  for (size_t i = 0; i < tile.planes; ++i) {
    const size_t depth = i + 1 == tile.planes ? tile.last_depth : tile.depth;
    for (size_t r = 0; r < tile.rows; ++r) {
      const float* row = tile.in + static_cast<ptrdiff_t>(i) * tile.plane_stride +
                         static_cast<ptrdiff_t>(r) * tile.row_stride;
      const float* weights = tile.weights + i * tile.weights_plane_stride +
                             r * tile.weights_row_stride + tile.column_weights;
      for (size_t s = 0; s < tile.columns; ++s, weights += tile.depth * kChannelBlock) {
        const typename Pixels::template Row<kPixels> pixels(tile, row, s);
        for (size_t k = 0; k < depth; ++k) {
          __m512bh w[kBlocks];
#pragma GCC unroll 2
          for (size_t b = 0; b < kBlocks; ++b) {
            w[b] = reinterpret_cast<__m512bh>(
                _mm512_loadu_si512(weights + b * tile.weights_block_stride + k * kChannelBlock));
          }
#pragma GCC unroll 16
          for (size_t p = 0; p < kPixels; ++p) {
            int32_t pair;
            std::memcpy(&pair, pixels.At(p) + k, sizeof(pair));
            const auto x = reinterpret_cast<__m512bh>(_mm512_set1_epi32(pair));
#pragma GCC unroll 2
            for (size_t b = 0; b < kBlocks; ++b) {
              sums[b][p] = _mm512_dpbf16_ps(sums[b][p], x, w[b]);
            }
          }
        }
      }
    }
  }
  const __m512 low = _mm512_set1_ps(tile.low), high = _mm512_set1_ps(tile.high);
#pragma GCC unroll 2
  for (size_t b = 0; b < kBlocks; ++b) {
    const __m512 mask = _mm512_loadu_ps(tile.masks + b * kChannelBlock);
    float* out = tile.out + b * tile.out_block_stride;
#pragma GCC unroll 16
    for (size_t p = 0; p < kPixels; ++p) {
      // NaN stays: the second operand is the result if one is NaN.
      constexpr __mmask16 kAllLanes = 0xffff;
      const __m512 clamped =
          _mm512_maskz_min_ps(kAllLanes, high, _mm512_maskz_max_ps(kAllLanes, low, sums[b][p]));
      _mm512_storeu_ps(out + p * kChannelBlock, _mm512_maskz_and_ps(kAllLanes, clamped, mask));
    }
  }
}

using TileFunction = void (*)(const ConvTile&);
// Two more would be 2 % faster and take 15 KB of code.
constexpr size_t kTilePixels = 12;

template <class Pixels, size_t kBlocks, size_t... kIndex>
constexpr std::array<TileFunction, kTilePixels> MakeTiles(std::index_sequence<kIndex...>) {
  return {&RunPairTile<Pixels, kBlocks, kIndex + 1>...};
}
// By pixels - 1.
template <class Pixels, size_t kBlocks>
constexpr std::array<TileFunction, kTilePixels> kTiles =
    MakeTiles<Pixels, kBlocks>(std::make_index_sequence<kTilePixels>());

// The form of a row for RunBlockedTask.
struct Bf16Blocks {
  static constexpr size_t kChannels = kChannelBlock;
  static constexpr size_t kPixelFloats = kPairs;
  static constexpr size_t kMaxPixels = kTilePixels;
  static constexpr size_t kMaxFixedStride = 1;
  template <class Pixels>
  static void Run(const ConvTile& tile, size_t blocks, size_t pixels) {
    static_assert(kMaxTileBlocks == 2);
    (blocks == 2 ? kTiles<Pixels, 2> : kTiles<Pixels, 1>)[pixels - 1](tile);
  }
};

}  // namespace

bool ConvBlockedBf16Worthwhile(const Conv2dShape& shape) {
  // Rounding an input costs as much as some products with it.
  constexpr size_t kFewProducts = 32;
  const size_t taps = shape.kernel_height * shape.kernel_width;
  const size_t products =
      shape.out_channels / shape.groups * taps / (shape.stride_height * shape.stride_width);
  return IsBf16GemmFast(Bf16Parts::kOne) && products >= kFewProducts;
}

TENON_BF16 void RoundConvWeights(const float* packed, size_t floats, float* rounded) {
  for (size_t i = 0; i < floats; i += 2 * kChannelBlock, rounded += kChannelBlock) {
    _mm512_storeu_si512(rounded,
                        NextToEachOther(RoundToBf16(_mm512_loadu_ps(packed + i),
                                                    _mm512_loadu_ps(packed + i + kChannelBlock))));
  }
}

void RunConvBlockedBf16Task(const ConvBlockedArgs& args, size_t task, void* scratch) {
  HWY_STATIC_DISPATCH(RunBlockedTask<Bf16Blocks>)(args, task, scratch);
}

#else

namespace {
void RoundPixels(const float*, size_t, size_t, float*) {}
}  // namespace

bool ConvBlockedBf16Worthwhile(const Conv2dShape&) { return false; }
void RoundConvWeights(const float*, size_t, float*) {}
void RunConvBlockedBf16Task(const ConvBlockedArgs&, size_t, void*) {}

#endif

size_t RoundedConvInputSize(const Conv2dShape& shape) {
  return BlockedSize(shape.batch, shape.in_channels, shape.in_height * shape.in_width) / 2;
}

// A task rounds one block of channels of an image.
size_t RoundConvInputTaskCount(const Conv2dShape& shape) {
  return shape.batch * ChannelBlocks(shape.in_channels);
}

void RunRoundConvInputTask(const Conv2dShape& shape, const float* in, size_t task, float* rounded) {
  const size_t pixels = shape.in_height * shape.in_width;
  const size_t first = task % ChannelBlocks(shape.in_channels) * kChannelBlock;
  RoundPixels(in + task * pixels * kChannelBlock, pixels,
              std::min(kChannelBlock, shape.in_channels - first), rounded + task * pixels * kPairs);
}

}  // namespace tenon::kernels
