// float32 matrix product with a fused epilogue: the core of MatMul-13, Gemm-13 and of everything
// that lowers to them.
//
//   C = activation(alpha * A x B + beta * C + bias + residual)
//
// A is [m, k], B is [k, n], C is [m, n]. Any size may be 0; with k == 0 the product is a matrix of
// zeros. Nothing is skipped: 0 * infinity is NaN here as in the formula.
//
// A product is divided into tasks, by shape alone. Tasks of one product write disjoint parts of C
// and may run in any order and on any threads; the bits of C do not depend on that. They depend on
// the sizes, the strides, whether B is packed, and the instruction set.
//
// No function here allocates, locks, or starts a thread; all are thread-safe. No input may overlap
// C or the scratch memory.
#pragma once

#include <cstddef>

#include "kernels/elementwise/activation.h"

namespace tenon::kernels {

struct GemmSizes {
  size_t m, n, k;
};

// A matrix of floats that is only read; element (i, j) is data[i * row_stride + j * column_stride].
// Strides are in elements. Fast forms: column_stride == 1 (row-major) and row_stride == 1
// (transposed); others work and are slower.
struct GemmMatrix {
  const float* data = nullptr;
  size_t row_stride = 0;
  size_t column_stride = 1;
};
// `data` holds the matrix row-major, with rows `ld` elements apart.
inline GemmMatrix RowMajor(const float* data, size_t ld) { return {data, ld, 1}; }
// `data` holds the matrix's transpose row-major, with rows `ld` elements apart.
inline GemmMatrix Transposed(const float* data, size_t ld) { return {data, 1, ld}; }

// What happens to an element of the product before it is stored. Null pointers mean: absent.
struct GemmEpilogue {
  const float* bias_columns = nullptr;  // [n], added to every row
  const float* bias_rows = nullptr;     // [m], added to every column
  const float* residual = nullptr;      // [m, n], row-major
  size_t ldr = 0;                       // residual's row stride
  ActivationSpec activation;
};

struct GemmArgs {
  GemmSizes sizes = {};
  float alpha = 1;
  float beta = 0;  // 0: C is only written and may hold anything before
  GemmMatrix a;
  GemmMatrix b;                     // not read when packed_b is given
  const float* packed_b = nullptr;  // as PackGemmB wrote it, under the same ActiveTarget()
  float* c = nullptr;               // row-major
  size_t ldc = 0;                   // >= n
  GemmEpilogue epilogue;
};

// Packed B: a constant B is laid out once, so that products stream it. The layout belongs to the
// ActiveTarget() of the time; it does not depend on m.

// Bytes of a packed [k, n] matrix; a multiple of 64.
size_t PackedGemmBSize(size_t n, size_t k);
// Packing is divided into tasks like a product: any order, any threads.
size_t PackGemmBTaskCount(size_t n, size_t k);
// The elements of `b` need not be aligned.
// packed: PackedGemmBSize(n, k) bytes, aligned to 64. `task` < PackGemmBTaskCount(n, k).
void RunPackGemmBTask(const GemmMatrix& b, size_t n, size_t k, size_t task, float* packed);
// All the tasks, on this thread.
void PackGemmB(const GemmMatrix& b, size_t n, size_t k, float* packed);

// The number of tasks; 0 when C is empty. A task takes some 10 to 1000 microseconds; products that
// take more than 100 have at least 8, if their m and n allow it.
size_t GemmTaskCount(const GemmSizes& sizes, bool packed_b);
// Bytes of scratch memory that every running task needs for itself; a multiple of 64, possibly 0.
size_t GemmScratchSize(const GemmSizes& sizes, bool packed_b);
// Runs one task. scratch: GemmScratchSize bytes, aligned to 64, with any content.
void RunGemmTask(const GemmArgs& args, size_t task, float* scratch);
// All the tasks, on this thread.
void Gemm(const GemmArgs& args, float* scratch);

}  // namespace tenon::kernels
