// Products of matrices of doubles and integers, which are rare in models: nothing is packed ahead.
#pragma once

#include <cstddef>

namespace tenon::kernels {

// Element (i, j) is data[i * row_stride + j * column_stride].
template <class T>
struct StridedMatrix {
  const T* data;
  size_t row_stride, column_stride;
};

// y = a x b, rows x n and dense; y overlaps neither. Sums of integers wrap around. How a row's sums
// are rounded does not depend on the other rows. T is double, uint32_t or uint64_t. May be called
// from several threads at once.
template <class T>
void MultiplyRows(const StridedMatrix<T>& a, const StridedMatrix<T>& b, size_t rows, size_t n,
                  size_t k, T* y);

}  // namespace tenon::kernels
