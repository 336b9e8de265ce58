// Direct convolution in NCHW16c (see conv_shape.h).
#pragma once

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"
#include "kernels/conv/conv_weights.h"

namespace tenon::kernels {

// Any kernel, stride, dilation and padding. More than one group needs multiples of 16 channels a
// group, in and out. Buffers need no alignment (64 bytes are best); `out` may be the residual and
// overlaps nothing else. Lanes past the real channels may hold anything in `in`; `out` gets zeros
// there.
struct ConvBlockedArgs {
  Conv2dShape shape;
  const float* in;       // NCHW16c
  const float* weights;  // as PackConvWeights wrote them; null: `pack` writes them
  float* out;            // NCHW16c
  ConvEpilogue epilogue;
  const PackConvBlock* pack = nullptr;
};

// True if ConvBlocked can compute the shape; rows must be shorter than 2^26 pixels.
bool ConvBlockedSupports(const Conv2dShape& shape);

// Work is divided into tasks by shape alone. They may run at once, each with scratch of its own of
// ConvBlockedScratchSize bytes, aligned to 64. Every output is a sum in an order that depends on
// the shape alone, not on whether the weights are packed before: if not, each task computes all
// pixels of some blocks of output channels, whose weights it packs into its scratch.
size_t ConvBlockedTaskCount(const Conv2dShape& shape, bool packed_weights);
size_t ConvBlockedScratchSize(const Conv2dShape& shape, bool packed_weights);
void RunConvBlockedTask(const ConvBlockedArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
