// Convolution with 2, 4 or 8 channels a group, in NCHW16c (see conv_shape.h).
#pragma once

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

// A group has as many output channels as input channels; any kernel, stride, dilation and padding.
// Groups smaller than 8 are computed in parts of 8 with zero weights between groups, so an infinity
// or NaN in one group makes NaN in its neighbours. Buffers as in ConvBlockedArgs, except the
// weights.
struct ConvGroupedArgs {
  Conv2dShape shape;
  const float* in;       // NCHW16c
  const float* weights;  // as PackGroupedWeights wrote them
  float* out;            // NCHW16c
  ConvEpilogue epilogue;
};

bool ConvGroupedSupports(const Conv2dShape& shape);

// Work is divided into tasks by shape alone. They may run at once, each with scratch of its own of
// ConvGroupedScratchSize bytes, aligned to 64.
size_t ConvGroupedTaskCount(const Conv2dShape& shape);
size_t ConvGroupedScratchSize(const Conv2dShape& shape);
void RunConvGroupedTask(const ConvGroupedArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
