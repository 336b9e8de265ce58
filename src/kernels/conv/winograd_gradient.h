// The gradient of the weights of a 3x3 convolution of stride 1 in NCHW by Winograd's minimal
// filtering F(4x4, 3x3): the transpose of what conv_winograd.h computes, with a quarter of the
// multiplications.
//
//   y = A' [(G g G') * (B' d B)] A   gives   dg = G' [(A dy A') * (B' d B), summed over tiles] G
//
// An infinity or NaN makes all weights of its channels NaN.
#pragma once

#include "kernels/conv/conv_shape.h"
#include "kernels/conv/conv_steps.h"

namespace tenon::kernels {

// Whether this is faster than conv_weight_gradient.h; false where it is not supported.
bool WinogradGradientWorthwhile(const Conv2dShape& shape);

// Buffers need no alignment and may not overlap.
struct WinogradGradientArgs {
  Conv2dShape shape;  // of the convolution; at least one image and one output pixel
  const float* in;    // [batch][in_channels][in_height][in_width]
  const float* dy;    // [batch][out_channels][out_height][out_width]
  float* dw;          // [out_channels][in_channels][3][3]
};

ConvSteps WinogradGradientSteps(const Conv2dShape& shape);
size_t WinogradGradientTaskCount(const Conv2dShape& shape, size_t step);
// Memory as ConvSteps says; all steps of a gradient have the same `shared`.
void RunWinogradGradientTask(const WinogradGradientArgs& args, size_t step, size_t task,
                             float* shared, float* scratch);

}  // namespace tenon::kernels
