// One run of an element-wise operator of two inputs that are broadcast.
#pragma once

#include "kernels/elementwise/elementwise.h"
#include "runtime/kernel_context.h"

namespace tenon {

// y = op(a, b), whose rows are of `functions`; tasks have about `grain` elements. y may lie in the
// memory of an input of its shape.
Status RunBroadcast(KernelContext& context, const kernels::BinaryFunctions& functions, size_t grain,
                    const Tensor& a, const Tensor& b, Tensor& y);

}  // namespace tenon
