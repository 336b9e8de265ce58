// The operations on a convolution's sums before they are stored.
#pragma once

#include "kernels/elementwise/activation.h"

namespace tenon::kernels {

// y = activation(sum + bias[channel] + residual).
struct ConvEpilogue {
  const float* bias = nullptr;      // [out_channels], or null for zero
  const float* residual = nullptr;  // same shape and layout as the output, which it may be; or null
  ActivationSpec activation;
};

}  // namespace tenon::kernels
