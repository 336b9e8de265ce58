#include "kernels/conv/conv_weights.h"

#include <algorithm>
#include <cstring>

#include "kernels/transpose_tiles.h"
#include "kernels/unaligned.h"

namespace tenon::kernels {
namespace {

// Channels of a half block.
constexpr size_t kHalf = kChannelBlock / 2;

size_t Taps(const Conv2dShape& shape) { return shape.kernel_height * shape.kernel_width; }

// Weights [out_channels][depth][taps] to [O / 16][D / block][taps][block][16].
struct BlockPacking {
  const float* weights;
  size_t out_channels;
  size_t depth;
  size_t taps;
  size_t block;
};

// Packs one block of 16 output channels: transposes some columns of [16][depth * taps] at a time,
// then puts each in its place.
void PackBlock(const BlockPacking& p, size_t index, float* packed) {
  constexpr size_t kColumns = 64;
  const size_t columns = p.depth * p.taps;
  const size_t planes = CeilDiv(p.depth, p.block);
  const size_t size = planes * p.taps * p.block * kChannelBlock;
  const size_t rows = std::min(kChannelBlock, p.out_channels - index * kChannelBlock);
  const float* from = p.weights + index * kChannelBlock * columns;
  if (p.depth % p.block != 0) std::fill_n(packed, size, 0.0f);
  float tile[kColumns][kChannelBlock] = {};
  size_t i = 0, tap = 0;
  for (size_t first = 0; first < columns; first += kColumns) {
    const size_t count = std::min(kColumns, columns - first);
    TransposeTiles({rows, count, static_cast<ptrdiff_t>(columns * sizeof(float)), sizeof(tile[0])},
                   sizeof(float), reinterpret_cast<const uint8_t*>(from + first),
                   reinterpret_cast<uint8_t*>(tile));
    for (size_t c = 0; c < count; ++c) {
      const size_t row = (i / p.block * p.taps + tap) * p.block + i % p.block;
      std::memcpy(packed + row * kChannelBlock, tile[c], sizeof(tile[c]));
      if (++tap == p.taps) {
        tap = 0;
        ++i;
      }
    }
  }
}

}  // namespace

size_t PackedConvWeightsSize(const Conv2dShape& shape) {
  return ChannelBlocks(shape.out_channels) * ChannelBlocks(shape.in_channels / shape.groups) *
         Taps(shape) * kChannelBlock * kChannelBlock;
}

void PackConvWeights(const Conv2dShape& shape, const float* weights, size_t block, float* packed) {
  PackBlock(
      {weights, shape.out_channels, shape.in_channels / shape.groups, Taps(shape), kChannelBlock},
      block, packed);
}

size_t PackedStemWeightsSize(const Conv2dShape& shape) {
  return ChannelBlocks(shape.out_channels) * shape.in_channels * Taps(shape) * kChannelBlock;
}

void PackStemWeights(const Conv2dShape& shape, const float* weights, size_t block, float* packed) {
  PackBlock({weights, shape.out_channels, shape.in_channels, Taps(shape), 1}, block, packed);
}

size_t PackedDepthwiseWeightsSize(const Conv2dShape& shape) {
  return ChannelBlocks(shape.out_channels) * Taps(shape) * kChannelBlock;
}

void PackDepthwiseWeights(const Conv2dShape& shape, const float* weights, size_t block,
                          float* packed) {
  PackBlock({weights, shape.out_channels, 1, Taps(shape), 1}, block, packed);
}

size_t PackedGroupedWeightsSize(const Conv2dShape& shape) {
  return ChannelBlocks(shape.out_channels) * 2 * Taps(shape) * kHalf * kHalf;
}

void PackGroupedWeights(const Conv2dShape& shape, const float* weights, size_t block,
                        float* packed) {
  const size_t taps = Taps(shape);
  const size_t group = shape.out_channels / shape.groups;
  const size_t first = block * kChannelBlock;
  std::fill_n(packed, 2 * taps * kHalf * kHalf, 0.0f);
  for (size_t o = first; o < std::min(shape.out_channels, first + kChannelBlock); ++o) {
    float* half = packed + (o - first) / kHalf * taps * kHalf * kHalf + o % kHalf;
    const size_t first_in = o / group * group % kHalf;
    for (size_t i = 0; i < group; ++i) {
      for (size_t t = 0; t < taps; ++t) {
        half[(t * kHalf + first_in + i) * kHalf] =
            LoadUnaligned(weights + (o * group + i) * taps + t);
      }
    }
  }
}

void PackChannels(const float* values, size_t channels, float* packed) {
  std::fill_n(packed, ChannelBlocks(channels) * kChannelBlock, 0.0f);
  std::copy_n(values, channels, packed);
}

}  // namespace tenon::kernels
