// Copies A and B into the layouts that the micro-kernels read. Included once per target.
#if defined(TENON_KERNELS_GEMM_PACK_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_GEMM_PACK_INL_H_
#undef TENON_KERNELS_GEMM_PACK_INL_H_
#else
#define TENON_KERNELS_GEMM_PACK_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "kernels/gemm/gemm_args.h"
#include "kernels/gemm/gemm_grid.h"
#include "kernels/gemm/gemm_tile-inl.h"
#include "kernels/unaligned.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Columns of a panel in memory: nr, or as many whole vectors as the last panel's columns need.
inline size_t PanelWidth(size_t columns) { return columns > kGemmLanes ? kGemmNr : kGemmLanes; }

// Transposes the 4 x 4 elements that four vectors have in each of their blocks of four lanes.
template <class V>
HWY_INLINE void TransposeBlocks(V& r0, V& r1, V& r2, V& r3) {
  const GemmTag d;
  const hn::RepartitionToWide<GemmTag> dw;
  const V low01 = hn::InterleaveLower(d, r0, r1), high01 = hn::InterleaveUpper(d, r0, r1);
  const V low23 = hn::InterleaveLower(d, r2, r3), high23 = hn::InterleaveUpper(d, r2, r3);
  const auto wide = [dw](V v) HWY_ATTR { return hn::BitCast(dw, v); };
  r0 = hn::BitCast(d, hn::InterleaveLower(dw, wide(low01), wide(low23)));
  r1 = hn::BitCast(d, hn::InterleaveUpper(dw, wide(low01), wide(low23)));
  r2 = hn::BitCast(d, hn::InterleaveLower(dw, wide(high01), wide(high23)));
  r3 = hn::BitCast(d, hn::InterleaveUpper(dw, wide(high01), wide(high23)));
}

// p[0, 4), p[4 stride, 4 stride + 4), ...: one block of four elements from every fourth row.
template <class D>
HWY_INLINE hn::Vec<D> LoadBlocks(D d, const float* p, size_t stride) {
  if constexpr (hn::MaxLanes(d) <= 4) {
    return hn::LoadU(d, p);
  } else {
    const hn::Half<D> half;
    const size_t rows = hn::MaxLanes(d) / 2;
    return hn::Combine(d, LoadBlocks(half, p + rows * stride, stride), LoadBlocks(half, p, stride));
  }
}

// Packs kSteps * 4 elements of each of a vector of columns that are contiguous in depth:
// out[i * width + j] = b[j * stride + i]. Reads all of them from one column before the next.
template <size_t kSteps>
HWY_INLINE void PackTransposedTile(const float* b, size_t stride, size_t width, float* out) {
  const GemmTag d;
  hn::Vec<GemmTag> r[4][kSteps];
#pragma GCC unroll 4
  for (size_t column = 0; column < 4; ++column) {
#pragma GCC unroll 4
    for (size_t s = 0; s < kSteps; ++s) {
      r[column][s] = LoadBlocks(d, b + column * stride + 4 * s, stride);
    }
  }
#pragma GCC unroll 4
  for (size_t s = 0; s < kSteps; ++s) {
    TransposeBlocks(r[0][s], r[1][s], r[2][s], r[3][s]);
#pragma GCC unroll 4
    for (size_t row = 0; row < 4; ++row) hn::StoreU(r[row][s], d, out + (4 * s + row) * width);
  }
}

// Packs one vector of columns that are contiguous in depth.
inline void PackTransposedVector(const float* b, size_t stride, size_t depth, size_t width,
                                 float* out) {
  // A line of a column is read at once where there are registers for it: 16 columns at a stride of
  // 4 KiB evict each other from the L1 cache.
  constexpr size_t kLineSteps = 4;
  size_t i = 0;
  if constexpr (kGemmLanes == 16) {
    for (; i + 4 * kLineSteps <= depth; i += 4 * kLineSteps, out += 4 * kLineSteps * width) {
      PackTransposedTile<kLineSteps>(b + i, stride, width, out);
    }
  }
  for (; i + 4 <= depth; i += 4, out += 4 * width) {
    PackTransposedTile<1>(b + i, stride, width, out);
  }
  for (; i < depth; ++i, out += width) {
    for (size_t j = 0; j < kGemmLanes; ++j) out[j] = LoadUnaligned(b + j * stride + i);
  }
}

inline void PackElements(const GemmMatrix& b, size_t depth, size_t columns, size_t width,
                         float* out) {
  for (size_t i = 0; i < depth; ++i, out += width) {
    const float* row = b.data + i * b.row_stride;
    if (b.column_stride == 1) {
      std::memcpy(out, static_cast<const void*>(row), columns * sizeof(float));
    } else {
      for (size_t j = 0; j < columns; ++j) out[j] = LoadUnaligned(row + j * b.column_stride);
    }
    std::fill(out + columns, out + width, 0.0f);
  }
}

// Copies whole panels of a row-major B. From each row it reads all their columns in one run, which
// suits memory.
inline void PackWholePanels(const float* b, size_t stride, size_t depth, size_t panels,
                            size_t panel_stride, float* out) {
  const GemmTag d;
  constexpr size_t kAhead = 8;  // rows; they may be pages apart, where no hardware prefetches
  for (size_t i = 0; i < depth; ++i, b += stride, out += kGemmNr) {
    for (size_t p = 0; p < panels; ++p) {
      const float* from = b + p * kGemmNr;
      float* to = out + p * panel_stride;
#pragma GCC unroll 2
      for (size_t line = 0; line < kGemmNr; line += 16) {
        hwy::Prefetch(from + kAhead * stride + line);
      }
#pragma GCC unroll 4
      for (size_t v = 0; v < kGemmNr; v += kGemmLanes) {
        hn::StoreU(hn::LoadU(d, from + v), d, to + v);
      }
    }
  }
}

// Writes one panel, [depth, PanelWidth(columns)], with zeros beyond `columns` <= nr. b points to
// its corner.
inline void PackPanel(const GemmMatrix& b, size_t depth, size_t columns, float* out) {
  const size_t width = PanelWidth(columns);
  if (b.column_stride == 1 || b.row_stride != 1 || columns % kGemmLanes != 0) {
    return PackElements(b, depth, columns, width, out);
  }
  for (size_t j = 0; j < columns; j += kGemmLanes) {
    PackTransposedVector(b.data + j * b.column_stride, b.column_stride, depth, width, out + j);
  }
}

// Packs `columns` columns from b's corner on into panels that begin panel_stride elements apart.
inline void PackPanels(const GemmMatrix& b, size_t depth, size_t columns, size_t panel_stride,
                       float* out) {
  size_t panel = 0;
  if (b.column_stride == 1) {
    panel = columns / kGemmNr;
    PackWholePanels(b.data, b.row_stride, depth, panel, panel_stride, out);
  }
  for (; panel * kGemmNr < columns; ++panel) {
    const size_t column = panel * kGemmNr;
    const GemmMatrix corner = {b.data + column * b.column_stride, b.row_stride, b.column_stride};
    PackPanel(corner, depth, std::min(kGemmNr, columns - column), out + panel * panel_stride);
  }
}

// Whether rows `stride` elements apart share one set of the L1 cache (64 sets of 8 lines of 64
// bytes) and few of the L2 cache, so that they evict each other: at strides of 4 KiB.
inline bool SharesSets(size_t stride) { return stride % 1024 == 0; }

// Whether rows of a panel of B that is read in place evict each other before the next tile reads
// them. At strides of 1 KiB an L2 cache of 512 KiB in 8 ways holds no more lines than the 512 of a
// panel of one line for each row, and none of A.
inline bool PanelSharesSets(size_t stride) { return stride % (kGemmNr <= 16 ? 256 : 1024) == 0; }

// Whether the micro-kernels can read A in place. They read `rows` lines at once.
inline bool ReadsWell(const GemmMatrix& a, size_t rows) {
  if (rows <= 4) return true;
  return a.column_stride == 1 && !SharesSets(a.row_stride);
}

// Copies a transposed A row-major, from which flat tiles read whole lines.
inline void CopyTransposedBlock(const GemmMatrix& a, size_t rows, size_t depth, size_t stride,
                                float* out) {
  for (size_t i = 0; i < depth; i += kGemmLanes) {
    const float* const from = a.data + i * a.column_stride;
    if (i + kGemmLanes > depth) {
      for (size_t r = 0; r < rows; ++r) {
        for (size_t j = 0; i + j < depth; ++j) {
          out[r * stride + i + j] = LoadUnaligned(from + j * a.column_stride + r);
        }
      }
      return;
    }
    for (size_t j = kGemmLanes; j < 2 * kGemmLanes; ++j) {
      for (size_t r = 0; r < rows; r += 16) hwy::Prefetch(from + j * a.column_stride + r);
    }
    PackTransposedVector(from, a.column_stride, rows, stride, out + i);
  }
}

// Copies rows x depth elements of A to a layout that is fast to read.
inline GemmMatrix CopyBlock(const GemmMatrix& a, size_t rows, size_t depth, float* out) {
  const size_t stride = GemmBlockStride(depth);
  const bool is_transposed = a.row_stride == 1 && a.column_stride != 1;
  if (is_transposed && kGemmMr < 8) {
    CopyTransposedBlock(a, rows, depth, stride, out);
    return {out, stride, 1};
  }
  if (is_transposed) {
    const size_t row = RoundUp(rows, 16);
    for (size_t i = 0; i < depth; ++i) {
      std::memcpy(out + i * row, a.data + i * a.column_stride, rows * sizeof(float));
    }
    return {out, 1, row};
  }
  for (size_t r = 0; r < rows; ++r) {
    const float* row = a.data + r * a.row_stride;
    if (a.column_stride == 1) {
      std::memcpy(out + r * stride, row, depth * sizeof(float));
    } else {
      for (size_t i = 0; i < depth; ++i) out[r * stride + i] = row[i * a.column_stride];
    }
  }
  return {out, stride, 1};
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
