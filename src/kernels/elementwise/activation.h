// Activations that kernels apply to a result before it leaves the cache: the functions of
// base/unary_functions.inc, by the code that runs them alone, so that the bits are the same.
#pragma once

#include "kernels/elementwise/elementwise.h"

namespace tenon::kernels {

// A function with its parameters, of which only those that it has matter.
struct ActivationSpec {
  UnaryOp op = UnaryOp::kIdentity;
  float alpha = 1;
  float beta = 0;
};

// One that is ready to be applied, in place, by the target in use.
class Activation {
 public:
  explicit Activation(const ActivationSpec& spec) : spec_(spec), function_(FindUnary(spec.op)) {}

  explicit operator bool() const { return spec_.op != UnaryOp::kIdentity; }
  void operator()(float* x, size_t n) const { function_(x, x, n, spec_.alpha, spec_.beta); }
  // To `rows` rows of n elements, `stride` apart.
  void OverRows(float* x, size_t stride, size_t rows, size_t n) const {
    function_.OverRows(x, stride, rows, n, spec_.alpha, spec_.beta);
  }

 private:
  ActivationSpec spec_;
  UnaryFunction function_;
};

}  // namespace tenon::kernels
