// Float32 matrix products from products of bfloat16 numbers, which are several times faster on
// processors with instructions for them. The numbers of A and B are rounded to one bfloat16 number
// each (8 bits), or taken as the sum of two (16 bits): of the four products of the parts, three are
// computed. Sums are in float32.
//
// The epilogue, the division into tasks and the threads are those of gemm.h. The rows of A are
// brought to bfloat16 first, once for all tasks of a product.
#pragma once

#include <cstddef>

#include "kernels/gemm/gemm_args.h"

namespace tenon::kernels {

// By how many bfloat16 numbers a float32 number is represented.
enum class Bf16Parts { kOne = 1, kTwo = 2 };

// Whether this is faster here than products of float32 numbers. Nothing else below may be called
// where it is not.
bool IsBf16GemmFast(Bf16Parts parts);

// Bytes of a packed [k, n] matrix; a multiple of 64.
size_t PackedBf16GemmBSize(size_t n, size_t k, Bf16Parts parts);
// Packing is divided into tasks, which may run in any order, on any threads.
size_t PackBf16GemmBTaskCount(size_t n);
// packed: aligned to 64. The elements of `b` need not be aligned.
void RunPackBf16GemmBTask(const GemmMatrix& b, size_t n, size_t k, Bf16Parts parts, size_t task,
                          void* packed);

// Bytes of the rows of A for all tasks; a multiple of 64.
size_t Bf16GemmRowsSize(const GemmSizes& sizes, Bf16Parts parts);
size_t Bf16GemmRowsTaskCount(const GemmSizes& sizes);
// rows: aligned to 64.
void RunBf16GemmRowsTask(const GemmMatrix& a, const GemmSizes& sizes, Bf16Parts parts, size_t task,
                         void* rows);

// The tasks of the product itself, once all rows are there.
size_t Bf16GemmTaskCount(const GemmSizes& sizes);
// args.a and args.b are not read. packed_b: as written for the same sizes and parts.
void RunBf16GemmTask(const GemmArgs& args, Bf16Parts parts, const void* rows, const void* packed_b,
                     size_t task);

}  // namespace tenon::kernels
