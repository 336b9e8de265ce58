// The epilogue of a product whose sums lie in a buffer.
#pragma once

#include <cstddef>

#include "kernels/elementwise/activation.h"
#include "kernels/gemm/gemm_args.h"

namespace tenon::kernels {

// Applies the epilogue of `args` to rows x columns sums, `ld` apart, and stores them from (row,
// column) of C on. Reads the rows of `sums` in whole vectors. activation: that of the epilogue.
void StoreGemmSums(const GemmArgs& args, const Activation& activation, size_t row, size_t column,
                   size_t rows, size_t columns, const float* sums, size_t ld);

}  // namespace tenon::kernels
