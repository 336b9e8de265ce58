// Packed weights of the blocked convolutions (layouts of conv_shape.h). Sizes count floats. Buffers
// need no alignment (64 bytes are best), and the weights need not even be aligned as floats. Lanes
// past the real channels are zero. A call packs one of the ChannelBlocks(out_channels) blocks of 16
// output channels, an equal part of the whole size, to `packed`; blocks may be packed in any order,
// on any threads.
#pragma once

#include <cstddef>

#include "base/function_ref.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

// Writes one block of packed weights to `packed`. Thread-safe.
using PackConvBlock = FunctionRef<void(size_t block, float* packed)>;

// Weights OIHW, [out_channels][in_channels / groups][kernel_height][kernel_width], to
// [O / 16][I / 16][kernel_height][kernel_width][16 i][16 o] with O and I rounded up to whole
// blocks. More than one group needs multiples of 16 channels a group, in and out.
size_t PackedConvWeightsSize(const Conv2dShape& shape);
void PackConvWeights(const Conv2dShape& shape, const float* weights, size_t block, float* packed);

// Weights OIHW of one group to [O / 16][I][kernel_height][kernel_width][16 o], for conv_stem.h.
size_t PackedStemWeightsSize(const Conv2dShape& shape);
void PackStemWeights(const Conv2dShape& shape, const float* weights, size_t block, float* packed);

// Depthwise weights [C][1][kernel_height][kernel_width] to
// [C / 16][kernel_height][kernel_width][16].
size_t PackedDepthwiseWeightsSize(const Conv2dShape& shape);
void PackDepthwiseWeights(const Conv2dShape& shape, const float* weights, size_t block,
                          float* packed);

// Weights OIHW with 2, 4 or 8 channels a group, as ConvGroupedSupports requires, to [C /
// 8][kernel_height][kernel_width][8 i][8 o] with C rounded up to whole blocks of 16; zero between
// different groups.
size_t PackedGroupedWeightsSize(const Conv2dShape& shape);
void PackGroupedWeights(const Conv2dShape& shape, const float* weights, size_t block,
                        float* packed);

// Packs `values`, one a channel, into whole blocks: [C / 16][16].
void PackChannels(const float* values, size_t channels, float* packed);

}  // namespace tenon::kernels
