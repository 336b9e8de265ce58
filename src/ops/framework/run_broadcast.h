// Runs of element-wise operators of two inputs that are broadcast.
#pragma once

#include <span>

#include "kernels/elementwise/elementwise.h"
#include "runtime/kernel_context.h"

namespace tenon {

// y = op(a, b), whose rows are of `functions`; tasks have about `grain` elements. y may lie in the
// memory of an input of its shape.
Status RunBroadcast(KernelContext& context, const kernels::BinaryFunctions& functions, size_t grain,
                    const Tensor& a, const Tensor& b, Tensor& y);

// An operator one of whose operands is a single element.
struct ScalarStep {
  kernels::BinaryFunction function;  // for a scalar at the place that `scalar_is_first` says
  const void* scalar;                // null: the operand is the elements of x
  bool scalar_is_first = false;
};

// y = x after all steps, one after the other, each of which keeps the type; without steps it is a
// copy. y may lie in the memory of x if no step reads x anew.
void RunScalarSteps(KernelContext& context, std::span<const ScalarStep> steps, const Tensor& x,
                    Tensor& y);

}  // namespace tenon
