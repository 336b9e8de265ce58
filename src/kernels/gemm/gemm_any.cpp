#include "kernels/gemm/gemm_any.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_any.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "kernels/dispatch.h"

#ifndef TENON_KERNELS_GEMM_GEMM_ANY_ONCE
#define TENON_KERNELS_GEMM_GEMM_ANY_ONCE
namespace tenon::kernels {
template <class T>
using MultiplyRowsFunction = void (*)(const StridedMatrix<T>& a, const StridedMatrix<T>& b,
                                      size_t rows, size_t n, size_t k, T* y);
// copy = `depth` rows of b, of which the first `columns` of `width` elements, then zeros.
template <class T>
void CopyPanel(const StridedMatrix<T>& b, size_t depth, size_t columns, size_t width, T* copy);
struct GemmAnyTable {
  MultiplyRowsFunction<double> of_double;
  MultiplyRowsFunction<uint32_t> of_uint32;
  MultiplyRowsFunction<uint64_t> of_uint64;
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A tile of 4 rows and two vectors has 8 sums, as many as there are multiply-adds in flight.
constexpr size_t kRows = 4;
// Rows of B that are copied at a time, where they are not contiguous or shorter than two vectors.
constexpr size_t kDepth = 64;

template <class D, class V>
HWY_INLINE V AddProduct(D, V a, V b, V sum) {
  if constexpr (hwy::IsFloat<hn::TFromD<D>>()) {
    return hn::MulAdd(a, b, sum);
  } else {
    return hn::Add(sum, hn::Mul(a, b));
  }
}

// Adds to kTileRows rows of two vectors of y, or begins with 0, the products with `depth` rows of
// b.
template <size_t kTileRows, class T>
HWY_INLINE void AddTile(const StridedMatrix<T>& a, const T* b, size_t b_stride, size_t depth,
                        bool is_first, T* y, size_t y_stride) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[kTileRows][2];
  for (size_t r = 0; r < kTileRows; ++r) {
    sums[r][0] = is_first ? hn::Zero(d) : hn::LoadU(d, y + r * y_stride);
    sums[r][1] = is_first ? hn::Zero(d) : hn::LoadU(d, y + r * y_stride + lanes);
  }
  for (size_t p = 0; p < depth; ++p, b += b_stride) {
    const auto b0 = hn::LoadU(d, b), b1 = hn::LoadU(d, b + lanes);
    for (size_t r = 0; r < kTileRows; ++r) {
      const auto factor = hn::Set(d, a.data[r * a.row_stride + p * a.column_stride]);
      sums[r][0] = AddProduct(d, factor, b0, sums[r][0]);
      sums[r][1] = AddProduct(d, factor, b1, sums[r][1]);
    }
  }
  for (size_t r = 0; r < kTileRows; ++r) {
    hn::StoreU(sums[r][0], d, y + r * y_stride);
    hn::StoreU(sums[r][1], d, y + r * y_stride + lanes);
  }
}

// The sum of a[p] * b[p], in four vectors.
template <class T>
T Dot(const T* a, const T* b, size_t k) {
  const hn::ScalableTag<T> d;
  const size_t lanes = hn::Lanes(d);
  hn::Vec<decltype(d)> sums[] = {hn::Zero(d), hn::Zero(d), hn::Zero(d), hn::Zero(d)};
  size_t p = 0;
  for (; p + 4 * lanes <= k; p += 4 * lanes) {
    for (size_t i = 0; i < 4; ++i) {
      const size_t at = p + i * lanes;
      sums[i] = AddProduct(d, hn::LoadU(d, a + at), hn::LoadU(d, b + at), sums[i]);
    }
  }
  T sum =
      hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(sums[0], sums[1]), hn::Add(sums[2], sums[3]))));
  for (; p < k; ++p) sum += a[p] * b[p];
  return sum;
}

template <class T>
void Multiply(const StridedMatrix<T>& a, const StridedMatrix<T>& b, size_t rows, size_t n, size_t k,
              T* y) {
  if (n == 1 && a.column_stride == 1 && b.row_stride == 1) {
    for (size_t i = 0; i < rows; ++i) y[i] = Dot(a.data + i * a.row_stride, b.data, k);
    return;
  }
  constexpr size_t kMostColumns = 2 * HWY_MAX_BYTES / sizeof(T);
  HWY_ALIGN T copy[kDepth * kMostColumns], tile[kRows * kMostColumns];
  const size_t width = 2 * hn::Lanes(hn::ScalableTag<T>());
  if (k == 0) std::fill_n(y, rows * n, T{0});
  for (size_t j = 0; j < n; j += width) {
    const size_t columns = std::min(width, n - j);
    const bool is_whole = columns == width;
    const bool is_copied = !is_whole || b.column_stride != 1;
    const size_t step = is_copied ? kDepth : k;
    for (size_t p = 0; p < k; p += step) {
      const size_t depth = std::min(step, k - p);
      const T* panel = b.data + p * b.row_stride + j * b.column_stride;
      if (is_copied) {
        CopyPanel<T>({panel, b.row_stride, b.column_stride}, depth, columns, width, copy);
        panel = copy;
      }
      const size_t panel_stride = is_copied ? width : b.row_stride;
      for (size_t i = 0; i < rows;) {
        const StridedMatrix<T> own = {a.data + i * a.row_stride + p * a.column_stride, a.row_stride,
                                      a.column_stride};
        const size_t count = i + kRows <= rows ? kRows : 1;
        T* to = y + i * n + j;
        for (size_t r = 0; r < count && !is_whole && p > 0; ++r) {
          std::copy_n(to + r * n, columns, tile + r * width);
        }
        T* sums = is_whole ? to : tile;
        const size_t stride = is_whole ? n : width;
        if (count == kRows) {
          AddTile<kRows>(own, panel, panel_stride, depth, p == 0, sums, stride);
        } else {
          AddTile<1>(own, panel, panel_stride, depth, p == 0, sums, stride);
        }
        for (size_t r = 0; r < count && !is_whole; ++r) {
          std::copy_n(tile + r * width, columns, to + r * n);
        }
        i += count;
      }
    }
  }
}

#if HWY_HAVE_FLOAT64
constexpr auto kMultiplyDoubles = &Multiply<double>;
#else
// Highway has no vectors of doubles for WebAssembly.
void MultiplyScalars(const StridedMatrix<double>& a, const StridedMatrix<double>& b, size_t rows,
                     size_t n, size_t k, double* y) {
  std::fill_n(y, rows * n, 0.0);
  for (size_t i = 0; i < rows; ++i, y += n) {
    for (size_t p = 0; p < k; ++p) {
      const double factor = a.data[i * a.row_stride + p * a.column_stride];
      const double* row = b.data + p * b.row_stride;
      for (size_t j = 0; j < n; ++j) y[j] += factor * row[j * b.column_stride];
    }
  }
}
constexpr auto kMultiplyDoubles = &MultiplyScalars;
#endif

const GemmAnyTable kGemmAnyTable = {kMultiplyDoubles, &Multiply<uint32_t>, &Multiply<uint64_t>};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

template <class T>
void CopyPanel(const StridedMatrix<T>& b, size_t depth, size_t columns, size_t width, T* copy) {
  for (size_t p = 0; p < depth; ++p, copy += width) {
    const T* row = b.data + p * b.row_stride;
    for (size_t c = 0; c < columns; ++c) copy[c] = row[c * b.column_stride];
    std::fill(copy + columns, copy + width, T{0});
  }
}

template <class T>
void MultiplyRows(const StridedMatrix<T>& a, const StridedMatrix<T>& b, size_t rows, size_t n,
                  size_t k, T* y) {
  const auto& table = TENON_SELECT_TABLE(GemmAnyTable, kGemmAnyTable);
  if constexpr (std::is_same_v<T, double>) {
    table.of_double(a, b, rows, n, k, y);
  } else if constexpr (std::is_same_v<T, uint32_t>) {
    table.of_uint32(a, b, rows, n, k, y);
  } else {
    table.of_uint64(a, b, rows, n, k, y);
  }
}

#define TENON_MULTIPLY_ROWS(T)                                                                 \
  template void MultiplyRows(const StridedMatrix<T>&, const StridedMatrix<T>&, size_t, size_t, \
                             size_t, T*);
TENON_MULTIPLY_ROWS(double)
TENON_MULTIPLY_ROWS(uint32_t)
TENON_MULTIPLY_ROWS(uint64_t)
#undef TENON_MULTIPLY_ROWS

}  // namespace tenon::kernels
#endif
