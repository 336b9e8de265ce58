// The arguments of a float32 matrix product; see gemm.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/elementwise/activation.h"

namespace tenon::kernels {

struct GemmSizes {
  size_t m, n, k;
};

// For how many threads a product is divided into tasks unless told.
inline constexpr size_t kGemmThreads = 4;

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

// The same of float16 numbers, given as their bits.
struct HalfMatrix {
  const uint16_t* data = nullptr;
  size_t row_stride = 0;
  size_t column_stride = 1;
};

// The operations on an element of the product before it is stored. Null pointers mean absent.
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
  float beta = 0;  // 0: C may hold anything before and is only written
  GemmMatrix a;
  GemmMatrix b;                             // not read when it is given in one of the packed forms:
  const float* packed_b = nullptr;          // as PackGemmB wrote it, under the same ActiveTarget()
  const uint16_t* packed_half_b = nullptr;  // the same of RunPackHalfGemmBTask
  float* c = nullptr;                       // row-major
  size_t ldc = 0;                           // >= n
  GemmEpilogue epilogue;
  size_t threads = kGemmThreads;  // as for GemmTaskCount
  bool is_backward = false;       // a task reads its panels of B from the last one to the first

  bool is_packed() const { return packed_b != nullptr || packed_half_b != nullptr; }
};

}  // namespace tenon::kernels
