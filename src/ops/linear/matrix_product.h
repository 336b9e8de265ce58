// The product of two stacks of float matrices, which MatMul, Gemm and their fusions share.
#pragma once

#include <optional>

#include "ir/shape_context.h"
#include "kernels/gemm/gemm.h"
#include "kernels/gemm/gemm_bf16.h"
#include "ops/framework/lazy_weights.h"
#include "ops/linear/matrix_stack.h"
#include "runtime/kernel_context.h"
#include "runtime/kernel_info.h"

namespace tenon {

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
};

// Checks that input `i`, if it is present, can be broadcast to [rows, columns]: it is [], [1],
// [columns], [1, columns], [rows, 1] or [rows, columns]. Unknown sizes pass. Error:
// kInvalidArgument.
Status CheckAddend(const ShapeContext& context, size_t i, const Dim& rows, const Dim& columns);

// Sets `addends` so that beta * C is added to the rows x columns elements of `y`, which may be
// written for it. C has passed CheckAddend.
void AddMatrix(const Tensor& c, float beta, size_t rows, size_t columns, Tensor& y,
               ProductAddends* addends);

// Multiplies input 0 by input 1 into output 0. Immutable once prepared.
class MatrixProduct {
 public:
  // Keeps input 1 of the node if it is a float constant for which packing is worthwhile; one of the
  // first runs packs it. Error: too large.
  Status Prepare(KernelInfo& info, const ProductOptions& options);

  // Y = activation(alpha * A x B + addends) on floats.
  Status Run(KernelContext& context, const ProductAddends& addends) const;

 private:
  // Input 1 as packed matrices, or as the constant where `may_read` allows it; neither if it is not
  // kept.
  Result<LazyWeights::Source> KeptB(KernelContext& context, const MatrixStack& b,
                                    bool may_read) const;

  size_t SlabColumnsOf(const MatrixStack& a, const MatrixStack& b) const;

  // The products of the matrices of a stack with the constant, one after the other. args: of the
  // first one.
  Status RunBf16(KernelContext& context, const kernels::GemmArgs& args, const MatrixStack& a) const;

  ProductOptions options_;
  // Set if the product is computed with bfloat16 numbers, of which packed_ then consists.
  std::optional<kernels::Bf16Parts> bf16_;
  // The constant's matrices one after the other, in PackGemmB's form or that of gemm_bf16.h.
  LazyWeights packed_;
  size_t packed_stride_ = 0;  // in floats
};

}  // namespace tenon
