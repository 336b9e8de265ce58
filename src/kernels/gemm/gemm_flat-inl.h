// Products of a few rows with a B that is not packed. B is read once, in place, in long runs: a
// copy would take longer than the product. Included once per target.
#if defined(TENON_KERNELS_GEMM_FLAT_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_GEMM_FLAT_INL_H_
#undef TENON_KERNELS_GEMM_FLAT_INL_H_
#else
#define TENON_KERNELS_GEMM_FLAT_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>

#include "kernels/dispatch.h"
#include "kernels/fused-inl.h"
#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/gemm_grid.h"
#include "kernels/gemm/gemm_pack-inl.h"
#include "kernels/gemm/gemm_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Columns that a flat product sums at once: 2 KiB of a row of B, a quarter of the L1 cache for the
// sums of 4 rows.
inline constexpr size_t kFlatColumns = 512;

// sums[r][j] += sum over g < kDepth of a(r, g) * b[g][j], for j < columns. `sums` has whole
// vectors.
template <size_t kRows, size_t kDepth>
HWY_INLINE void AddScaledRows(const GemmMatrix& a, const float* b, size_t b_stride, size_t columns,
                              float* HWY_RESTRICT sums) {
  const GemmTag d;
  hn::Vec<GemmTag> factors[kRows][kDepth];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (size_t g = 0; g < kDepth; ++g) {
      factors[r][g] = hn::Set(d, a.data[r * a.row_stride + g * a.column_stride]);
    }
  }
  const auto add = [&](size_t j, auto access) HWY_ATTR {
    hn::Vec<GemmTag> row_sums[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) row_sums[r] = hn::Load(d, sums + r * kFlatColumns + j);
#pragma GCC unroll 8
    for (size_t g = 0; g < kDepth; ++g) {
      const auto row = access.Load(d, b + g * b_stride + j);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) row_sums[r] = FastMulAdd(factors[r][g], row, row_sums[r]);
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) hn::Store(row_sums[r], d, sums + r * kFlatColumns + j);
  };
  size_t j = 0;
  for (; j + kGemmLanes <= columns; j += kGemmLanes) {
    // Prefetches the rows that the next call reads, unless they would evict each other.
    if (j % 16 == 0 && !(kDepth > 4 && SharesSets(b_stride))) {
#pragma GCC unroll 8
      for (size_t g = 0; g < kDepth; ++g) hwy::Prefetch(b + (kDepth + g) * b_stride + j);
    }
    add(j, WholeVector{});
  }
  if (j < columns) add(j, PartialVector{columns - j});
}

// Computes the sums of up to kFlatColumns columns of a row-major B, rows kFlatColumns apart.
template <size_t kRows>
void SumRowsOfB(GemmMatrix a, const float* b, size_t b_stride, size_t depth, size_t columns,
                float* sums) {
  constexpr size_t kDepth = kRows <= 2 ? 8 : 4;
  for (size_t r = 0; r < kRows; ++r) {
    std::fill_n(sums + r * kFlatColumns, RoundUp(columns, kGemmLanes), 0.0f);
  }
  size_t i = 0;
  for (; i + kDepth <= depth; i += kDepth) {
    AddScaledRows<kRows, kDepth>(a, b, b_stride, columns, sums);
    a.data += kDepth * a.column_stride;
    b += kDepth * b_stride;
  }
  for (; i < depth; ++i) {
    AddScaledRows<kRows, 1>(a, b, b_stride, columns, sums);
    a.data += a.column_stride;
    b += b_stride;
  }
}

// The sum of each block of four lanes' first, second, ... lane: four sums in the lowest block.
template <class D, class V>
HWY_INLINE hn::Vec128<float> SumOfBlocks(D d, V v) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    return v;
  } else {
    const hn::Half<D> half;
    return SumOfBlocks(half, hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v)));
  }
}

// sums[r][j] = the dot product of row r of A, contiguous, and column j of B, contiguous, for four
// columns at b[0], ..., b[3].
template <size_t kRows>
HWY_INLINE void DotFourColumns(const float* a, size_t a_stride, const float* const* b, size_t depth,
                               float* sums, size_t sums_stride) {
  const GemmTag d;
  using V = hn::Vec<GemmTag>;
  constexpr size_t kAhead = 512;  // 2 KiB in each of four columns
  const bool prefetches = !StreamsBestAlone();
  V dots[kRows][4];
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) dots[r][j] = hn::Zero(d);
  }
  const auto step = [&](size_t i, auto access) HWY_ATTR {
    V row[kRows];
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) row[r] = access.Load(d, a + r * a_stride + i);
#pragma GCC unroll 4
    for (size_t j = 0; j < 4; ++j) {
      const V column = access.Load(d, b[j] + i);
#pragma GCC unroll 4
      for (size_t r = 0; r < kRows; ++r) dots[r][j] = FastMulAdd(row[r], column, dots[r][j]);
    }
  };
  size_t i = 0;
  for (; i + kGemmLanes <= depth; i += kGemmLanes) {
    if (prefetches && i % 16 == 0) {
#pragma GCC unroll 4
      for (size_t j = 0; j < 4; ++j) hwy::Prefetch(b[j] + i + kAhead);
    }
    step(i, WholeVector{});
  }
  if (i < depth) step(i, PartialVector{depth - i});
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    TransposeBlocks(dots[r][0], dots[r][1], dots[r][2], dots[r][3]);
    const V total = hn::Add(hn::Add(dots[r][0], dots[r][1]), hn::Add(dots[r][2], dots[r][3]));
    hn::StoreU(SumOfBlocks(d, total), hn::FixedTag<float, 4>(), sums + r * sums_stride);
  }
}

// Rows of A whose dot products with four columns are summed at once. In WebAssembly 8 sums, as in
// gemm_tile-inl.h; the columns are then read from the L1 cache again.
inline constexpr size_t kMostDotRows = HWY_ARCH_WASM ? 2 : kGemmFlatRows;

// Computes the sums of up to kFlatColumns columns of a transposed B, rows kFlatColumns apart. A's
// rows are contiguous.
template <size_t kRows>
void SumDots(const GemmMatrix& a, const float* b, size_t b_stride, size_t depth, size_t columns,
             float* sums) {
  for (size_t j = 0; j < columns; j += 4) {
    const float* column[4];
    for (size_t i = 0; i < 4; ++i) column[i] = b + std::min(j + i, columns - 1) * b_stride;
    constexpr size_t kFirst = std::min(kRows, kMostDotRows);
    DotFourColumns<kFirst>(a.data, a.row_stride, column, depth, sums + j, kFlatColumns);
    if constexpr (kRows > kFirst) {
      DotFourColumns<kRows - kFirst>(a.data + kFirst * a.row_stride, a.row_stride, column, depth,
                                     sums + kFirst * kFlatColumns + j, kFlatColumns);
    }
  }
}

// Whether the rows of A and the columns of B are contiguous; a single column may also be seen as
// rows.
inline bool HasDots(const GemmMatrix& a, const GemmMatrix& b, size_t columns) {
  return b.row_stride == 1 && a.column_stride == 1 && (b.column_stride != 1 || columns == 1);
}

// Whether FlatSums supports this product. A and B are those of GemmArgs.
inline bool IsFlat(const GemmSizes& s, const GemmMatrix& a, const GemmMatrix& b) {
  if (s.m > kGemmFlatRows) return false;
  if (HasDots(a, b, s.n)) return true;
  // The micro-kernels are fast for rows of B that are short and dense.
  return b.column_stride == 1 && b.row_stride > 4 * kGemmNr;
}

// Computes the sums of `columns` <= kFlatColumns columns of B from b.data on, rows kFlatColumns
// apart.
inline void FlatSums(size_t rows, const GemmMatrix& a, const GemmMatrix& b, size_t depth,
                     size_t columns, float* sums) {
  const auto call = [&](auto by_rows, auto by_dots) HWY_ATTR {
    if (HasDots(a, b, columns)) return by_dots(a, b.data, b.column_stride, depth, columns, sums);
    by_rows(a, b.data, b.row_stride, depth, columns, sums);
  };
  switch (rows) {
    case 1:
      return call(&SumRowsOfB<1>, &SumDots<1>);
    case 2:
      return call(&SumRowsOfB<2>, &SumDots<2>);
    case 3:
      return call(&SumRowsOfB<3>, &SumDots<3>);
    default:
      return call(&SumRowsOfB<4>, &SumDots<4>);
  }
}

// Whether NarrowSums suits this product: a copy of B, row-major, would take longer than the
// product.
inline bool IsNarrow(const GemmSizes& s, const GemmMatrix& b) {
  constexpr size_t kMostRows = 16;
  return s.m <= kMostRows && s.n <= kGemmLanes && b.column_stride == 1;
}

// The sums of up to a vector of columns, rows a vector apart.
template <size_t kRows>
void NarrowSums(const GemmMatrix& a, const GemmMatrix& b, size_t depth, size_t columns,
                float* sums) {
  const GemmTag d;
  using V = hn::Vec<GemmTag>;
  constexpr size_t kSets = kRows == 1 ? 4 : 2;  // of sums, which would wait for each other
  const PartialVector row_of_b{columns};
  V parts[kSets][kRows];
#pragma GCC unroll 4
  for (size_t s = 0; s < kSets; ++s) {
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) parts[s][r] = hn::Zero(d);
  }
  const auto step = [&](size_t i, size_t set) HWY_ATTR {
    const V row = row_of_b.Load(d, b.data + i * b.row_stride);
#pragma GCC unroll 4
    for (size_t r = 0; r < kRows; ++r) {
      const V factor = hn::Set(d, a.data[r * a.row_stride + i * a.column_stride]);
      parts[set][r] = FastMulAdd(factor, row, parts[set][r]);
    }
  };
  size_t i = 0;
  for (; i + kSets <= depth; i += kSets) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kSets; ++s) step(i + s, s);
  }
  for (; i < depth; ++i) step(i, 0);
#pragma GCC unroll 4
  for (size_t r = 0; r < kRows; ++r) {
    V sum = hn::Add(parts[0][r], parts[1][r]);
    if constexpr (kSets == 4) sum = hn::Add(sum, hn::Add(parts[2][r], parts[3][r]));
    hn::Store(sum, d, sums + r * kGemmLanes);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
