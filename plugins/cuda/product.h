// Matrix products by cuBLASLt.
#pragma once

#include "device_call.h"

namespace cuda {

// a x b for a [.., m, k] and b [.., k, n], whose leading axes broadcast; a is row-major or
// transposed in its last two axes, or becomes so by a copy, and so is b. The result [.., m, n] is
// deferred: what follows may still become the product's epilogue. Error: shapes that do not fit.
Result<TensorRef> Multiply(Planner& planner, const TensorRef& a, const TensorRef& b,
                           float alpha = 1);

// A call that can do element-wise work on its result before it is in memory. Each function gives
// the extended call, or null if it cannot be extended so. The calls are not changed.
struct EpilogueCall : DeviceCall {
  using DeviceCall::DeviceCall;
  // Adds a tensor that broadcasts to the result's shape.
  virtual std::shared_ptr<Call> Add(Planner& planner, const Shape& shape,
                                    const TensorRef& other) const = 0;
  enum class Activation { kRelu, kTanhGelu };
  virtual std::shared_ptr<Call> Activate(Activation activation) const = 0;
};

// Target::add.
TensorRef AddToCall(Planner& planner, const TensorRef& sum, const TensorRef& other);

// The call that computes the tensor, if it is still to be made and can be extended; else null.
const EpilogueCall* Extensible(const Tensor& tensor);

}  // namespace cuda
