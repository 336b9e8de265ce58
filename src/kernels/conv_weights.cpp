#include "kernels/conv_weights.h"

#include <algorithm>

namespace tenon::kernels {
namespace {

// Channels of a half block.
constexpr size_t kHalf = kChannelBlock / 2;

size_t Taps(const Conv2dShape& shape) { return shape.kernel_height * shape.kernel_width; }

// weights [out_channels][depth][taps] to [O / 16][D / block][taps][block][16].
void PackBlocks(const float* weights, size_t out_channels, size_t depth, size_t taps, size_t block,
                float* packed) {
  const size_t planes = CeilDiv(depth, block);
  std::fill_n(packed, ChannelBlocks(out_channels) * planes * taps * block * kChannelBlock, 0.0f);
  for (size_t o = 0; o < out_channels; ++o) {
    float* to =
        packed + o / kChannelBlock * planes * taps * block * kChannelBlock + o % kChannelBlock;
    for (size_t i = 0; i < depth; ++i) {
      const float* from = weights + (o * depth + i) * taps;
      for (size_t t = 0; t < taps; ++t) {
        to[((i / block * taps + t) * block + i % block) * kChannelBlock] = from[t];
      }
    }
  }
}

}  // namespace

size_t PackedConvWeightsSize(const Conv2dShape& shape) {
  return ChannelBlocks(shape.out_channels) * ChannelBlocks(shape.in_channels / shape.groups) *
         Taps(shape) * kChannelBlock * kChannelBlock;
}

void PackConvWeights(const Conv2dShape& shape, const float* weights, float* packed) {
  PackBlocks(weights, shape.out_channels, shape.in_channels / shape.groups, Taps(shape),
             kChannelBlock, packed);
}

size_t PackedStemWeightsSize(const Conv2dShape& shape) {
  return ChannelBlocks(shape.out_channels) * shape.in_channels * Taps(shape) * kChannelBlock;
}

void PackStemWeights(const Conv2dShape& shape, const float* weights, float* packed) {
  PackBlocks(weights, shape.out_channels, shape.in_channels, Taps(shape), 1, packed);
}

size_t PackedDepthwiseWeightsSize(const Conv2dShape& shape) {
  return ChannelBlocks(shape.out_channels) * Taps(shape) * kChannelBlock;
}

void PackDepthwiseWeights(const Conv2dShape& shape, const float* weights, float* packed) {
  PackBlocks(weights, shape.out_channels, 1, Taps(shape), 1, packed);
}

size_t PackedGroupedWeightsSize(const Conv2dShape& shape) {
  return ChannelBlocks(shape.out_channels) * 2 * Taps(shape) * kHalf * kHalf;
}

void PackGroupedWeights(const Conv2dShape& shape, const float* weights, float* packed) {
  const size_t taps = Taps(shape);
  const size_t group = shape.out_channels / shape.groups;
  std::fill_n(packed, PackedGroupedWeightsSize(shape), 0.0f);
  for (size_t o = 0; o < shape.out_channels; ++o) {
    float* half = packed + o / kHalf * taps * kHalf * kHalf + o % kHalf;
    const size_t first_in = o / group * group % kHalf;
    for (size_t i = 0; i < group; ++i) {
      for (size_t t = 0; t < taps; ++t) {
        half[(t * kHalf + first_in + i) * kHalf] = weights[(o * group + i) * taps + t];
      }
    }
  }
}

void PackChannels(const float* values, size_t channels, float* packed) {
  std::fill_n(packed, ChannelBlocks(channels) * kChannelBlock, 0.0f);
  std::copy_n(values, channels, packed);
}

}  // namespace tenon::kernels
