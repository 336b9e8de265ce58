// The arguments of a convolution in NCHW; see conv_general.h.
#pragma once

#include <cstddef>

#include "kernels/conv/conv_epilogue.h"
#include "kernels/conv/conv_shape.h"

namespace tenon::kernels {

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
