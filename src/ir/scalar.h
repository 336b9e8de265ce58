// Constants with one element, which rules compare with numbers.
#pragma once

#include <optional>

#include "tensor/tensor.h"

namespace tenon {

// The only element of `tensor` as a number; nothing if it has more or fewer elements, is not
// numeric, or is not in memory that the CPU can read. int64 beyond 2^53 is rounded.
std::optional<double> ScalarOf(const Tensor& tensor);

// Whether the only element of `tensor` is `value` in the tensor's type: exactly for integers, up to
// a few units in the last place for floats. A float32 may have been widened from 16 bits.
bool IsScalarNear(const Tensor& tensor, double value);

// A tensor of floating-point or integer `type` that holds `value`, rounded to that type.
// Error: kInvalidArgument for any other type.
Result<Tensor> MakeScalar(DataType type, double value, Shape shape = {});

}  // namespace tenon
