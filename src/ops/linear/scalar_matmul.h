// Products of matrices of doubles and integers, which are rare in models: scalar loops over blocks
// that stay in the L1 cache.
#pragma once

#include <algorithm>
#include <type_traits>

#include "base/arithmetic.h"
#include "ops/linear/matrix_stack.h"
#include "runtime/kernel_context.h"

namespace tenon {

inline constexpr TypeSet kScalarProductTypes = {
    DataType::kDouble, DataType::kInt32, DataType::kInt64, DataType::kUint32, DataType::kUint64};

// Calls visit(T()) with the C++ type of one of kScalarProductTypes.
template <class Visit>
Status VisitScalarProductType(DataType type, Visit&& visit) {
  switch (type) {
    case DataType::kDouble:
      return visit(double());
    case DataType::kInt32:
      return visit(int32_t());
    case DataType::kInt64:
      return visit(int64_t());
    case DataType::kUint32:
      return visit(uint32_t());
    case DataType::kUint64:
      return visit(uint64_t());
    default:
      return NotImplemented("element type {}", DataTypeName(type));
  }
}

template <class T>
struct ScalarMatrix {
  const T* data;
  size_t row_stride, column_stride;  // in elements
};

// The type for sums of T: for integers an unsigned type, which wraps around, and at least as wide
// as int, so that products do not overflow.
template <class T, bool = std::is_integral_v<T>>
struct ScalarSum {
  using Type = T;
};
template <class T>
struct ScalarSum<T, true> {
  using Type = std::conditional_t<(sizeof(T) > sizeof(uint32_t)), uint64_t, uint32_t>;
};

// The rows x n elements of `y` = a x b; `y` is row-major and dense. Each sum runs over p = 0, 1,
// ..., k - 1 in this order.
template <class T>
void ScalarProductRows(const ScalarMatrix<T>& a, const ScalarMatrix<T>& b, size_t rows, size_t n,
                       size_t k, T* y) {
  using Sum = typename ScalarSum<T>::Type;
  constexpr size_t kColumns = 64;
  constexpr size_t kRows = 4;
  Sum sums[kRows][kColumns];
  const auto add = [](Sum factor, const T* row, size_t stride, size_t columns, Sum* into) {
    for (size_t j = 0; j < columns; ++j) into[j] += factor * static_cast<Sum>(row[j * stride]);
  };
  for (size_t j = 0; j < n; j += kColumns) {
    const size_t columns = std::min(kColumns, n - j);
    for (size_t i = 0; i < rows; i += kRows) {
      const size_t block = std::min(kRows, rows - i);
      for (size_t r = 0; r < block; ++r) std::fill_n(sums[r], columns, Sum{0});
      for (size_t p = 0; p < k; ++p) {
        const T* row = b.data + p * b.row_stride + j * b.column_stride;
        for (size_t r = 0; r < block; ++r) {
          const auto factor =
              static_cast<Sum>(a.data[(i + r) * a.row_stride + p * a.column_stride]);
          // The case of contiguous rows separately, so that its loop is vectorized.
          if (b.column_stride == 1) {
            add(factor, row, 1, columns, sums[r]);
          } else {
            add(factor, row, b.column_stride, columns, sums[r]);
          }
        }
      }
      for (size_t r = 0; r < block; ++r) {
        std::transform(sums[r], sums[r] + columns, y + (i + r) * n + j,
                       [](Sum sum) { return static_cast<T>(sum); });
      }
    }
  }
}

// Output 0 = input 0 x input 1, tensors of T.
template <class T>
Status RunScalarProduct(KernelContext& context, OperandForm a_form, OperandForm b_form) {
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const MatrixStack a = StackOf(context.Input(0).shape(), a_form, Side::kLeft);
  const MatrixStack b = StackOf(context.Input(1).shape(), b_form, Side::kRight);
  const BatchPairs pairs(a.batch, b.batch);
  constexpr size_t kRowsPerTask = 16;
  const size_t row_tasks = CeilDiv(a.rows, kRowsPerTask);
  return context.ForEachTask(pairs.count() * row_tasks, 0, [&](size_t task, std::byte*) {
    const size_t matrix = task / row_tasks;
    const size_t row = task % row_tasks * kRowsPerTask;
    const BatchPairs::Pair pair = pairs.At(matrix);
    const ScalarMatrix<T> rows_of_a = {
        context.Input(0).data<T>() + pair.a * a.matrix_stride + row * a.row_stride, a.row_stride,
        a.column_stride};
    const ScalarMatrix<T> whole_b = {context.Input(1).data<T>() + pair.b * b.matrix_stride,
                                     b.row_stride, b.column_stride};
    ScalarProductRows(rows_of_a, whole_b, std::min(kRowsPerTask, a.rows - row), b.columns,
                      a.columns, y.data<T>() + (matrix * a.rows + row) * b.columns);
  });
}

}  // namespace tenon
