// What a convolution does with its sums before it stores them.
#pragma once

#include <cstdint>

namespace tenon::kernels {

enum class ConvActivation : uint8_t {
  kNone,
  kRelu,
  kClip,  // to [alpha, beta]
};

// y = activation(sum + bias[channel] + residual). NaN passes through the activations.
struct ConvEpilogue {
  const float* bias = nullptr;      // [out_channels], or null for zero
  const float* residual = nullptr;  // same shape and layout as the output, which it may be; or null
  ConvActivation activation = ConvActivation::kNone;
  float alpha = 0;
  float beta = 0;
};

}  // namespace tenon::kernels
