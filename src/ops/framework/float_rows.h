// Rows of float, float16 or bfloat16 tensors, for operators that compute in float and whose inputs
// may have different types of these.
#pragma once

#include <cstddef>

#include "tensor/tensor.h"

namespace tenon {

inline constexpr TypeSet kFloatRowTypes = {DataType::kFloat, DataType::kFloat16,
                                           DataType::kBfloat16};

// Elements [first, first + n) of a tensor of kFloatRowTypes: in place if they are floats, otherwise
// converted into `buffer`.
const float* FloatRow(const Tensor& tensor, size_t first, size_t n, float* buffer);

// The same, into `row`. The tensor's elements may be unaligned, as those of a stored constant.
void CopyFloatRow(const Tensor& tensor, size_t first, size_t n, float* row);

// Sets these elements, rounded to nearest even.
void StoreFloatRow(const float* values, size_t n, size_t first, Tensor& tensor);

// Rounds floats to the precision of the type; `work` has n elements.
void RoundFloats(DataType type, float* values, size_t n, uint16_t* work);

}  // namespace tenon
