// Direct convolution in NCHW16c (see conv_shape.h).
#pragma once

#include <cstddef>

#include "kernels/conv/conv_blocked_args.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

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
