// Convolution with 2, 4 or 8 channels a group, in NCHW16c (see conv_shape.h).
#pragma once

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

// As many channels a group in as out; any kernel, stride, dilation and padding. Groups of less than
// 8 are computed as parts of 8, the weights between them being zero: an infinity or NaN in one
// makes NaN of its neighbours. Buffers as of ConvBlockedArgs, but for the weights.
struct ConvGroupedArgs {
  Conv2dShape shape;
  const float* in;       // NCHW16c
  const float* weights;  // of PackGroupedWeights
  float* out;            // NCHW16c
  ConvEpilogue epilogue;
};

bool ConvGroupedSupports(const Conv2dShape& shape);

// The work falls into tasks by shape alone; they may run at once, each with a scratch of its own of
// ConvGroupedScratchSize bytes, aligned to 64.
size_t ConvGroupedTaskCount(const Conv2dShape& shape);
size_t ConvGroupedScratchSize(const Conv2dShape& shape);
void RunConvGroupedTask(const ConvGroupedArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
