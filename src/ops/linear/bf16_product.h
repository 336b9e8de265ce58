// Products of two stacks of matrices by products of bfloat16 numbers (kernels/gemm/gemm_bf16.h).
#pragma once

#include "kernels/gemm/gemm_bf16.h"
#include "ops/linear/matrix_stack.h"
#include "runtime/kernel_context.h"

namespace tenon {

// What is multiplied; the first matrices of the stacks, and of the output.
struct Bf16Products {
  kernels::GemmArgs args;  // a, b and packed_b are not read
  kernels::Bf16Parts parts = kernels::Bf16Parts::kOne;
  kernels::Bf16Matrix a;
  kernels::Bf16Matrix b;           // not read when packed_b is given
  const void* packed_b = nullptr;  // for a stack of one matrix, as gemm_bf16.h packs it
  // The output, if it is of bfloat16 numbers. Addends that have rows have those of all products.
  kernels::Bf16Output output;
};

// Packs one B by all threads.
void PackBf16B(ThreadPool& threads, const kernels::Bf16Matrix& b, size_t columns, size_t depth,
               kernels::Bf16Parts parts, void* packed);

// Multiplies the matrices of the stacks, whose batch axes are broadcast. Uses up the one call of
// Scratch. Error: out of memory.
Status RunBf16Products(KernelContext& context, const Bf16Products& products, const MatrixStack& a,
                       const MatrixStack& b);

}  // namespace tenon
