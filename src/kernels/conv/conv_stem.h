// Convolution of a planar input with few channels, the first layer of a network: NCHW to NCHW16c.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

// One group; any kernel, stride, dilation, padding and number of channels (about 1 to 8 are worth
// it). Buffers need no alignment (64 bytes are best); `out` may be the residual and overlaps
// nothing else.
struct ConvStemArgs {
  Conv2dShape shape;
  const float* in;       // NCHW
  const float* weights;  // as PackStemWeights wrote them
  float* out;            // NCHW16c
  ConvEpilogue epilogue;
};

// Work is divided into tasks by shape alone. They may run at once, each with scratch of its own of
// ConvStemScratchSize bytes, aligned to 64: the task's input rows with their padding.
size_t ConvStemTaskCount(const Conv2dShape& shape);
size_t ConvStemScratchSize(const Conv2dShape& shape);
void RunConvStemTask(const ConvStemArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
