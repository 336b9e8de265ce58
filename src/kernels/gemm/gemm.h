// float32 matrix product with a fused epilogue: the core of MatMul-13, Gemm-13 and all operators
// that are computed with it.
//
//   C = activation(alpha * A x B + beta * C + bias + residual)
//
// A is [m, k], B is [k, n], C is [m, n]. Any size may be 0; with k == 0 the product is a matrix of
// zeros. Nothing is skipped: 0 * infinity is NaN here as in the formula.
//
// A product is divided into tasks by its shape and for a number of threads. Tasks of one product
// write disjoint parts of C and may run in any order and on any threads; the bits of C do not
// depend on that. They depend on the sizes, the strides, whether B is packed, and the instruction
// set.
//
// No function here allocates, locks, or starts a thread; all are thread-safe. No input may overlap
// C or the scratch memory.
#pragma once

#include <cstddef>

#include "kernels/gemm/gemm_args.h"

namespace tenon::kernels {

// Packed B: a constant B is stored once in the order in which products read it. The layout belongs
// to the ActiveTarget() at the time of packing; it does not depend on m.

// Columns of a panel. From a multiple of it on, columns of C are the same in bits if they are
// computed from a packed matrix of only the same columns of B.
size_t GemmPanelColumns();
// Rows of a tile: products of a multiple of it, of at least some 40 rows, are the fastest.
size_t GemmTileRows();
// Bytes of a packed [k, n] matrix; a multiple of 64.
size_t PackedGemmBSize(size_t n, size_t k);
// Packing is divided into tasks like a product: any order, any threads.
size_t PackGemmBTaskCount(size_t n, size_t k);
// The elements of `b` need not be aligned.
// packed: PackedGemmBSize(n, k) bytes, aligned to 64. `task` < PackGemmBTaskCount(n, k).
void RunPackGemmBTask(const GemmMatrix& b, size_t n, size_t k, size_t task, float* packed);
// Runs all tasks on this thread.
void PackGemmB(const GemmMatrix& b, size_t n, size_t k, float* packed);

// A B of float16 numbers takes half the memory, and is widened on the way into the multiplications.
// The bits of C are those of a packed float32 B of the same numbers, but for the columns of a last
// panel that is narrower. Its packing is divided into as many tasks.

// Whether the processor widens such numbers itself; if not, there are no such products.
bool IsHalfGemmFast();
// Bytes; a multiple of 64.
size_t PackedHalfGemmBSize(size_t n, size_t k);
// packed: PackedHalfGemmBSize(n, k) bytes, aligned to 64.
void RunPackHalfGemmBTask(const HalfMatrix& b, size_t n, size_t k, size_t task, uint16_t* packed);

// The number of tasks; 0 when C is empty. A task takes some 10 to 1000 microseconds; products that
// take more than 100 have at least four for each of two to four threads, if their m and n allow it.
// There are not many more, and few for one: each task may copy parts of A and B, as others do.
size_t GemmTaskCount(const GemmSizes& sizes, bool packed_b, size_t threads = kGemmThreads);
// Bytes of scratch memory that every running task needs for itself, for any number of threads; a
// multiple of 64, possibly 0. is_half: for a packed_half_b.
size_t GemmScratchSize(const GemmSizes& sizes, bool packed_b, bool is_half = false);
// Runs one task. scratch: GemmScratchSize bytes, aligned to 64, with any content. Incomplete if the
// thread's run is to end early (StopSignal).
void RunGemmTask(const GemmArgs& args, size_t task, float* scratch);
// Runs all tasks on this thread.
void Gemm(const GemmArgs& args, float* scratch);

}  // namespace tenon::kernels
