// The arguments of a product of int8 and uint8 matrices; see gemm_int8.h.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon::kernels {

// Element (i, j) is data[i * row_stride + j * column_stride]. Fast: column_stride == 1.
struct Int8Matrix {
  const uint8_t* data = nullptr;
  bool is_signed = false;
  size_t row_stride = 0;
  size_t column_stride = 1;
};

enum class Int8Output : uint8_t { kInt32, kFloat, kUint8, kInt8 };

// The conversion of the sums. kFloat: S * scale + float_bias. kUint8, kInt8: saturate(round(S *
// scale) + zero_point), ties to even. The scale is the product of scale_columns and scale_rows.
struct Int8Epilogue {
  const int32_t* bias_columns = nullptr;  // [n]; null: 0
  const int32_t* bias_rows = nullptr;     // [m]; null: 0
  float scale = 1;
  const float* scale_columns = nullptr;  // [n]; null: 1
  const float* scale_rows = nullptr;     // [m]; null: 1
  const float* float_bias = nullptr;     // [n]; null: 0
  int32_t zero_point = 0;
  Int8Output type = Int8Output::kInt32;
};

struct Int8GemmArgs {
  size_t m = 0, n = 0, k = 0;
  Int8Matrix a;
  const std::byte* packed_a = nullptr;  // as RunPackInt8GemmRowsTask wrote it; a is not read then
  Int8Matrix b;                         // its data is not read when packed_b is given
  const uint8_t* packed_b = nullptr;    // as PackInt8GemmPanels did, under the same ActiveTarget()
  const int32_t* a_zero = nullptr;      // [m], or one if !a_zero_per_row; null: 0
  const int32_t* b_zero = nullptr;      // [n], or one if !b_zero_per_column; null: 0
  bool a_zero_per_row = false;
  bool b_zero_per_column = false;
  void* c = nullptr;  // row-major, rows ldc elements apart
  size_t ldc = 0;
  Int8Epilogue epilogue;
};

}  // namespace tenon::kernels
