// The product of two stacks of int8 or uint8 matrices, which the quantized products share.
#pragma once

#include "ir/shape_context.h"
#include "kernels/gemm/gemm_int8.h"
#include "ops/framework/lazy_weights.h"
#include "ops/linear/matrix_stack.h"
#include "runtime/kernel_context.h"
#include "runtime/kernel_info.h"

namespace tenon {

inline constexpr TypeSet kByteTypes = {DataType::kInt8, DataType::kUint8};

// One product. Zero points and scales hold one element, one for each row of A or column of B, or
// one for each of these in every matrix.
struct Int8ProductCall {
  const Tensor* a = nullptr;
  const Tensor* b = nullptr;
  const Tensor* a_zero = nullptr;  // null: 0
  const Tensor* b_zero = nullptr;
  // Null for 32-bit sums; else S * (a_scale * b_scale / y_scale).
  const Tensor* a_scale = nullptr;
  const Tensor* b_scale = nullptr;
  const Tensor* y_scale = nullptr;    // null: 1
  const int32_t* bias = nullptr;      // [n]
  const float* float_bias = nullptr;  // [n]
  int32_t y_zero = 0;
  kernels::Int8Output type = kernels::Int8Output::kInt32;
  void* y = nullptr;
};

// Checks that zero points or scales in input `i`, if it is present, fit `lines` rows or columns of
// each of the matrices of an operand of shape `operand`. Unknown sizes pass.
Status CheckLineValues(const ShapeContext& context, size_t i, const SymbolicShape& operand,
                       const Dim& lines);

// CheckLineValues for both operands' zero points or scales, in inputs a and b.
Status CheckProductValues(const ShapeContext& context, const SymbolicShape& a,
                          const SymbolicShape& b, size_t a_input, size_t b_input);

// Immutable once prepared.
class Int8Product {
 public:
  // Keeps input `b_input` of the node if it is an int8 or uint8 constant, to pack it as the policy
  // for weights says.
  Status Prepare(KernelInfo& info, size_t b_input, OperandForm a_form = {},
                 OperandForm b_form = {});

  // Bytes of scratch memory that RunIn needs, a multiple of 64; SIZE_MAX if that does not fit.
  size_t ScratchBytes(const KernelContext& context, const Int8ProductCall& call) const;
  // Computes the product. `memory` is aligned to 64.
  Status RunIn(std::byte* memory, KernelContext& context, const Int8ProductCall& call) const;
  // The same with memory from context.Scratch.
  Status Run(KernelContext& context, const Int8ProductCall& call) const;

 private:
  struct Plan;
  Plan MakePlan(const Int8ProductCall& call) const;
  Result<LazyWeights::Source> KeptB(KernelContext& context, size_t rows, const MatrixStack& b,
                                    DataType type) const;

  OperandForm a_form_, b_form_;
  LazyWeights packed_;
};

}  // namespace tenon
