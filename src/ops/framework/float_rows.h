// Rows of tensors of float, float16 or bfloat16, for operators that compute in float and whose
// inputs may have different ones of these types.
#pragma once

#include <cstddef>

#include "tensor/tensor.h"

namespace tenon {

inline constexpr TypeSet kFloatRowTypes = {DataType::kFloat, DataType::kFloat16,
                                           DataType::kBfloat16};

// Elements [first, first + n) of a tensor of kFloatRowTypes: where they lie if they are floats,
// else converted into `buffer`.
const float* FloatRow(const Tensor& tensor, size_t first, size_t n, float* buffer);

// Sets these elements, rounded to nearest even.
void StoreFloatRow(const float* values, size_t n, size_t first, Tensor& tensor);

// Rounds floats to what the type can hold; `work` has n elements.
void RoundFloats(DataType type, float* values, size_t n, uint16_t* work);

}  // namespace tenon
