// The functions that RunReduce calls for an operator and a type: sums of rows, and of columns.
#pragma once

#include <cstddef>

#include "kernels/element_type.h"
#include "kernels/reduce_op.h"

namespace tenon::kernels {

// Outputs that are made at a time where the innermost axis is kept: their accumulators stay in L1.
inline constexpr size_t kReduceBlock = 512;
inline constexpr size_t kMaxAccumulatorBytes = 16;

// Only the kernels know the type of accumulators. `shift` is null, or for LogSumExp the maximum of
// every output, which is subtracted before exp.
struct ReduceKernels {
  void (*initialize)(void* accumulators, size_t n);
  // Adds x[0, n) to one accumulator.
  void (*add_row)(const void* x, size_t n, const void* shift, void* accumulator);
  // Adds x[r * stride + j], for all rows r, to accumulator j of n <= kReduceBlock.
  void (*add_columns)(const void* x, size_t stride, size_t rows, size_t n, const void* shift,
                      void* accumulators);
  // `count` elements were added to each.
  void (*finish)(const void* accumulators, size_t n, size_t count, const void* shift, void* y);
};

ReduceKernels FindReduceKernels(ReduceOp op, ElementType type);
ReduceKernels FindFloatReduceKernels(ReduceOp op);

}  // namespace tenon::kernels
