// Arguments of the direct convolutions in NCHW16c, conv_blocked.h and conv_blocked_bf16.h.
#pragma once

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

}  // namespace tenon::kernels
