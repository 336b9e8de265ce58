// Activations that kernels apply to a result before it leaves the cache.
#pragma once

#include <cstdint>
#include <limits>

namespace tenon::kernels {

enum class Activation : uint8_t {
  kNone,
  kRelu,         // max(x, 0)
  kClip,         // min(max(x, alpha), beta)
  kLeakyRelu,    // x < 0 ? alpha x : x
  kHardSigmoid,  // min(max(alpha x + beta, 0), 1)
  kHardSwish,    // x min(max(x / 6 + 1/2, 0), 1)
  kSigmoid,      // 1 / (1 + exp(-x))
  kTanh,         // tanh(x)
  kGelu,         // x / 2 (1 + erf(x / sqrt(2)))
  kGeluTanh,     // x / 2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
  kSilu,         // x / (1 + exp(-alpha x)); alpha = 1 is SiLU (Swish), 1.702 is QuickGelu
};

// An activation with its parameters, of which only those that its formula names matter.
// All activations give NaN for NaN.
struct ActivationSpec {
  Activation kind = Activation::kNone;
  float alpha = 1;
  float beta = 0;
};

}  // namespace tenon::kernels
