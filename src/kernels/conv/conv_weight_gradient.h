// The gradient of Conv-11's weights, in NCHW, for rank 1 to 3 and any groups and sizes, by matrix
// products with gathered inputs:
//
//   dw[m, c, r] = sum over images and output pixels p of dy[m, p] x[c, p * stride + r * dilation -
//   pad_begin]
#pragma once

#include <cstddef>

#include "kernels/conv/conv_general_args.h"

namespace tenon::kernels {

// Buffers need no alignment and may not overlap.
struct ConvWeightGradientArgs {
  ConvGeneralShape shape;  // of the convolution; at least one image and one output pixel
  const float* in;         // [batch][in_channels][in dims]
  const float* dy;         // [batch][out_channels][out dims]
  float* dw;               // [out_channels][in_channels / groups][kernel dims]
};

// Work is divided into tasks by shape alone. They may run at once, each with scratch of its own of
// ConvWeightGradientScratchSize bytes, aligned to 64.
size_t ConvWeightGradientTaskCount(const ConvGeneralShape& shape);
size_t ConvWeightGradientScratchSize(const ConvGeneralShape& shape);
void RunConvWeightGradientTask(const ConvWeightGradientArgs& args, size_t task, void* scratch);

}  // namespace tenon::kernels
