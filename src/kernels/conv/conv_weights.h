// Packed weights of the blocked convolutions (layouts of conv_shape.h). Sizes count floats. The
// buffers need no alignment, not even that of floats for the weights; 64 bytes are best. Lanes past
// the real channels are zero. A call packs one of the ChannelBlocks(out_channels) blocks of 16
// output channels, which lie apart from each other: any order, any threads.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

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

// Weights OIHW with 2, 4 or 8 channels a group, as ConvGroupedSupports has it, to
// [C / 8][kernel_height][kernel_width][8 i][8 o] with C rounded up to whole blocks of 16; zero
// between different groups.
size_t PackedGroupedWeightsSize(const Conv2dShape& shape);
void PackGroupedWeights(const Conv2dShape& shape, const float* weights, size_t block,
                        float* packed);

// `values`, one a channel, to whole blocks: [C / 16][16].
void PackChannels(const float* values, size_t channels, float* packed);

}  // namespace tenon::kernels
