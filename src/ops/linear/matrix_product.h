// The product of two stacks of float or bfloat16 matrices, which MatMul, Gemm and their fusions
// share.
#pragma once

#include <optional>

#include "ir/shape_context.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_bf16.h"
#include "ops/framework/lazy_weights.h"
#include "ops/linear/bf16_product.h"
#include "ops/linear/matrix_stack.h"
#include "runtime/kernel_context.h"
#include "runtime/kernel_info.h"

namespace tenon {

// Of both operands and of the output.
inline constexpr TypeSet kProductTypes = {DataType::kFloat, DataType::kBfloat16};

struct ProductOptions {
  OperandForm a, b;
  float alpha = 1;
  kernels::ActivationSpec activation;
};

// The addends of a product before its activation. Null or zero: nothing.
struct ProductAddends {
  const float* row = nullptr;       // [n], added to every row
  const float* column = nullptr;    // [m], added to every column; only without batch axes
  const float* residual = nullptr;  // one element for each of the output's
  float beta = 0;                   // times what the output holds
  kernels::Bf16Addend narrow[2];    // in the place of all others if the output is of bfloat16
};

// Checks that input `i`, if it is present, can be broadcast to [rows, columns]: it is [], [1],
// [columns], [1, columns], [rows, 1] or [rows, columns]. Unknown sizes pass. Error:
// kInvalidArgument.
Status CheckAddend(const ShapeContext& context, size_t i, const Dim& rows, const Dim& columns);

// Sets `addends` so that beta * C, of the type of `y`, is added to the rows x columns elements of
// `y`, which may be written for it. C has passed CheckAddend.
void AddMatrix(const Tensor& c, float beta, size_t rows, size_t columns, Tensor& y,
               ProductAddends* addends);

// Sets `addends` so that one element, of the output's type, is added to each of the output's, which
// has rows of so many columns.
void AddResidual(const Tensor& residual, size_t columns, ProductAddends* addends);

// Multiplies input 0 by input 1 into output 0. Immutable once prepared.
class MatrixProduct {
 public:
  // Keeps input 1 of the node if it is a constant for which packing is worthwhile; one of the first
  // runs packs it. It may be a matrix of float16 numbers with at least two columns. Errors: too
  // large; kNotImplemented for bfloat16 where the processor has no products of them.
  Status Prepare(KernelInfo& info, const ProductOptions& options);

  // Y = activation(alpha * A x B + addends).
  Status Run(KernelContext& context, const ProductAddends& addends) const;

 private:
  // Input 1 as packed matrices for so many rows of A, or as the constant where `may_read` allows
  // it; neither if it is not kept.
  Result<LazyWeights::Source> KeptB(KernelContext& context, size_t rows, const MatrixStack& b,
                                    bool may_read) const;

  size_t ColumnsAtOnceOf(const MatrixStack& a, const MatrixStack& b) const;

  // Whether these products are computed with bfloat16 numbers.
  bool UsesBf16(const MatrixStack& a, const MatrixStack& b) const;
  Status RunBf16(KernelContext& context, const ProductAddends& addends, const MatrixStack& a,
                 const MatrixStack& b) const;

  ProductOptions options_;
  // Set if products may be computed with bfloat16 numbers. If packed_ is kept, it consists of them.
  std::optional<kernels::Bf16Parts> bf16_;
  bool reads_narrow_ = false;  // an operand is of bfloat16
  bool is_narrow_ = false;     // the output is
  bool is_half_ = false;       // packed_ is kept, and of float16 numbers
  // The constant's matrices one after the other, in one of the packed forms of gemm.h, or in that
  // of gemm_bf16.h.
  LazyWeights packed_;
  size_t packed_stride_ = 0;  // in floats
};

}  // namespace tenon
