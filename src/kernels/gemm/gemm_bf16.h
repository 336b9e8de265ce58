// Matrix products from products of bfloat16 numbers, which are several times faster than those of
// float32 on processors with instructions for them. The numbers of A and B are bfloat16, or float32
// that are rounded to one bfloat16 number each (8 bits) or taken as the sum of two (16 bits): of
// the four products of the parts, three are computed. Sums are in float32.
//
// The epilogue, the division into tasks and the threads are those of gemm.h. The rows of A are
// brought to bfloat16 first, once for all tasks of a product.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/gemm_args.h"

namespace tenon::kernels {

// By how many bfloat16 numbers a float32 number is represented.
enum class Bf16Parts { kOne = 1, kTwo = 2 };

// A matrix of float32 or bfloat16 numbers that is only read; element (i, j) is number
// i * row_stride + j * column_stride. Fast forms: column_stride == 1 and row_stride == 1.
struct Bf16Matrix {
  const void* data = nullptr;
  size_t row_stride = 0;
  size_t column_stride = 1;
  bool is_bf16 = false;

  Bf16Matrix() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a form of it
  Bf16Matrix(const GemmMatrix& m)
      : data(m.data), row_stride(m.row_stride), column_stride(m.column_stride) {}
  Bf16Matrix(const uint16_t* numbers, size_t rows_apart, size_t columns_apart)
      : data(numbers), row_stride(rows_apart), column_stride(columns_apart), is_bf16(true) {}
};

// What is added to a product, `scale` times bfloat16 numbers: element (i, j) is number
// i * row_stride + j * column_stride, where column_stride is 0 or 1. Null: nothing.
struct Bf16Addend {
  const uint16_t* data = nullptr;
  size_t row_stride = 0, column_stride = 0;
  float scale = 1;
};

// A C of bfloat16 numbers, in the place of GemmArgs::c and with its ldc. It is only written.
struct Bf16Output {
  uint16_t* c = nullptr;
  Bf16Addend addends[2];
};

// Whether this is faster here than products of float32 numbers. Nothing else below may be called
// where it is not.
bool IsBf16GemmFast(Bf16Parts parts);

// Bytes of a packed [k, n] matrix; a multiple of 64.
size_t PackedBf16GemmBSize(size_t n, size_t k, Bf16Parts parts);
// Packing is divided into tasks, which may run in any order, on any threads.
size_t PackBf16GemmBTaskCount(size_t n);
// packed: aligned to 64. The elements of `b` need not be aligned.
void RunPackBf16GemmBTask(const Bf16Matrix& b, size_t n, size_t k, Bf16Parts parts, size_t task,
                          void* packed);

// Bytes of the rows of A for all tasks; a multiple of 64.
size_t Bf16GemmRowsSize(const GemmSizes& sizes, Bf16Parts parts);
size_t Bf16GemmRowsTaskCount(const GemmSizes& sizes);
// rows: aligned to 64.
void RunBf16GemmRowsTask(const Bf16Matrix& a, const GemmSizes& sizes, Bf16Parts parts, size_t task,
                         void* rows);

// The tasks of the product itself, once all rows are there.
size_t Bf16GemmTaskCount(const GemmSizes& sizes);
// args.a and args.b are not read. packed_b: as written for the same sizes and parts. output: null
// if C is of float32 numbers; otherwise args.c, args.beta and the epilogue's addends are not used.
void RunBf16GemmTask(const GemmArgs& args, Bf16Parts parts, const void* rows, const void* packed_b,
                     size_t task, const Bf16Output* output = nullptr);

}  // namespace tenon::kernels
