// Depthwise convolution in NCHW16c (see conv_shape.h): every channel has its own filter.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

// in_channels == out_channels == groups; any kernel, stride, dilation and padding. Buffers need no
// alignment (64 bytes are best); `out` may be the residual, or `in` if the kernel is one tap with
// stride 1 and without padding, and overlaps nothing else. Lanes past the real channels may hold
// anything in `in`; `out` gets zeros there.
struct ConvDepthwiseArgs {
  Conv2dShape shape;
  const float* in;       // NCHW16c
  const float* weights;  // as PackDepthwiseWeights wrote them
  float* out;            // NCHW16c
  ConvEpilogue epilogue;
};

// Work is divided into tasks by shape alone; they may run at once and need no scratch memory.
size_t ConvDepthwiseTaskCount(const Conv2dShape& shape);
void RunConvDepthwiseTask(const ConvDepthwiseArgs& args, size_t task);

}  // namespace tenon::kernels
