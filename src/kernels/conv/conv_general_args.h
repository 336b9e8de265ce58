// The arguments of a convolution in NCHW; see conv_general.h.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"

namespace tenon::kernels {

// One spatial dimension. In Conv, output coordinate y and tap r use input coordinate y * stride + r
// * dilation - pad_begin. In ConvTranspose, input coordinate x and tap r contribute to output
// coordinate x * stride + r * dilation - pad_begin. Missing leading dimensions have the defaults.
struct ConvDim {
  size_t in = 1;
  size_t out = 1;
  size_t kernel = 1;
  size_t stride = 1;
  size_t dilation = 1;
  size_t pad_begin = 0;
};

struct ConvGeneralShape {
  size_t batch = 1;
  size_t in_channels = 0;   // of all groups
  size_t out_channels = 0;  // of all groups
  size_t groups = 1;
  ConvDim dims[3];  // depth, height, width
};

// Buffers need no alignment and may not overlap.
struct ConvGeneralArgs {
  ConvGeneralShape shape;
  const float* in;  // [batch][in_channels][in dims]
  // Conv-11: [out_channels][in_channels / groups][kernel dims]
  // ConvTranspose-11: [in_channels][out_channels / groups][kernel dims]
  const float* weights;
  float* out;  // [batch][out_channels][out dims]
  ConvEpilogue epilogue;
};

}  // namespace tenon::kernels
