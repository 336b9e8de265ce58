// Activations that kernels apply to a result while it is still in the cache. They are the functions
// of base/unary_functions.inc, computed by the same code as alone, so the bits are the same.
#pragma once

#include "kernels/elementwise/elementwise.h"

namespace tenon::kernels {

// A function and its parameters. Parameters that the function does not have are ignored.
struct ActivationSpec {
  UnaryOp op = UnaryOp::kIdentity;
  float alpha = 1;
  float beta = 0;
};

// An activation ready to be applied, in place, with the code of the target in use.
class Activation {
 public:
  explicit Activation(const ActivationSpec& spec) : spec_(spec), function_(FindUnary(spec.op)) {}

  explicit operator bool() const { return spec_.op != UnaryOp::kIdentity; }
  void operator()(float* x, size_t n) const { function_(x, x, n, spec_.alpha, spec_.beta); }
  // Applies it to `rows` rows of n elements, `stride` apart.
  void OverRows(float* x, size_t stride, size_t rows, size_t n) const {
    function_.OverRows(x, stride, rows, n, spec_.alpha, spec_.beta);
  }

 private:
  ActivationSpec spec_;
  UnaryFunction function_;
};

}  // namespace tenon::kernels
