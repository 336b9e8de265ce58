// Gradients of activations on contiguous runs.
//
// All functions may be called from several threads at once. dx may be dy or x (the same pointer).
// An element's bits do not depend on where in the run it lies, so a run may be split anywhere.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// The derivative as a function of the activation's input x, or of its output where y is named.
enum class GradientOp : uint8_t {
  kRelu,       // x > 0
  kLeakyRelu,  // y > 0 ? 1 : alpha
  kSigmoid,    // y (1 - y)
  kTanh,       // 1 - y^2
  kGelu,       // Phi(x) + x phi(x), of the normal distribution
  kGeluTanh,   // of x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2
  kQuickGelu,  // of x sigmoid(alpha x)
};

// dx[i] = dy[i] derivative(x[i]) for i in [0, n).
void ActivationGradient(GradientOp op, const float* dy, const float* x, float* dx, size_t n,
                        float alpha);

}  // namespace tenon::kernels
