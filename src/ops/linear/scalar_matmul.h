// Products of matrices of doubles and integers.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/gemm/gemm_any.h"
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
using ScalarMatrix = kernels::StridedMatrix<T>;

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
  if constexpr (sizeof(T) == sizeof(Sum)) {
    const auto operand = [](const ScalarMatrix<T>& x) -> ScalarMatrix<Sum> {
      return {reinterpret_cast<const Sum*>(x.data), x.row_stride, x.column_stride};
    };
    kernels::MultiplyRows(operand(a), operand(b), rows, n, k, reinterpret_cast<Sum*>(y));
    return;
  }
  // Integers that are narrower than their sums, which only Einsum multiplies.
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < n; ++j) {
      Sum sum = 0;
      for (size_t p = 0; p < k; ++p) {
        sum += static_cast<Sum>(a.data[i * a.row_stride + p * a.column_stride]) *
               static_cast<Sum>(b.data[p * b.row_stride + j * b.column_stride]);
      }
      *y++ = static_cast<T>(sum);
    }
  }
}

// Output 0 = input 0 x input 1, tensors of one of kScalarProductTypes.
Status RunScalarProduct(KernelContext& context, OperandForm a_form, OperandForm b_form);

}  // namespace tenon
