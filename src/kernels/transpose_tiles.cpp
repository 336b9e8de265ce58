#include "kernels/transpose_tiles.h"

#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

// Vectors of 16 bytes do all the work, so one compilation works for every target of a machine.
HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// A block is a cache line of src in each of as many rows: every line is touched once.
constexpr size_t kLine = 64;

// Transposes L x L elements, L = 16 / sizeof(T), from rows of src to rows of dst.
template <class T>
HWY_INLINE void TransposeVectors(const uint8_t* src, ptrdiff_t src_stride, uint8_t* dst,
                                 ptrdiff_t dst_stride) {
  constexpr size_t kL = 16 / sizeof(T);
  const hn::Full128<T> d;
  const hn::Full128<uint8_t> d8;
  hn::Vec<decltype(d)> v[kL], w[kL];
  for (size_t i = 0; i < kL; ++i) {
    v[i] = hn::BitCast(d, hn::LoadU(d8, src + static_cast<ptrdiff_t>(i) * src_stride));
  }
  // log2(L) perfect shuffles of the rows.
  for (size_t step = 1; step < kL; step *= 2) {
    for (size_t i = 0; i < kL / 2; ++i) {
      w[2 * i] = hn::InterleaveLower(d, v[i], v[i + kL / 2]);
      w[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + kL / 2]);
    }
    std::copy(w, w + kL, v);
  }
  for (size_t i = 0; i < kL; ++i) {
    hn::StoreU(hn::BitCast(d8, v[i]), d8, dst + static_cast<ptrdiff_t>(i) * dst_stride);
  }
}

// A whole block, through a buffer: rows of dst may be a power of two apart, and the cache holds few
// lines at such distances, so each row is written at once.
template <class T>
void TransposeBlock(const uint8_t* src, ptrdiff_t src_stride, uint8_t* dst, ptrdiff_t dst_stride) {
  constexpr size_t kSide = kLine / sizeof(T);
  constexpr size_t kL = 16 / sizeof(T);
  alignas(kLine) uint8_t buffer[kSide * kLine];
  for (size_t r = 0; r < kSide; r += kL) {
    for (size_t c = 0; c < kSide; c += kL) {
      TransposeVectors<T>(src + static_cast<ptrdiff_t>(r) * src_stride + c * sizeof(T), src_stride,
                          buffer + c * kLine + r * sizeof(T), kLine);
    }
  }
  const hn::Full128<uint8_t> d8;
  for (size_t c = 0; c < kSide; ++c) {
    uint8_t* to = dst + static_cast<ptrdiff_t>(c) * dst_stride;
    for (size_t i = 0; i < kLine; i += 16) {
      hn::StoreU(hn::Load(d8, buffer + c * kLine + i), d8, to + i);
    }
  }
}

template <class T>
void TransposeScalars(const TransposeSizes& sizes, const uint8_t* src, uint8_t* dst) {
  for (size_t c = 0; c < sizes.columns; ++c) {
    const uint8_t* from = src + c * sizeof(T);
    uint8_t* to = dst + static_cast<ptrdiff_t>(c) * sizes.dst_stride;
    for (size_t r = 0; r < sizes.rows; ++r, from += sizes.src_stride) {
      std::memcpy(to + r * sizeof(T), from, sizeof(T));
    }
  }
}

// A part of a block: what vectors hold, and then its edges.
template <class T>
void TransposePart(const TransposeSizes& sizes, const uint8_t* src, uint8_t* dst) {
  constexpr size_t kL = 16 / sizeof(T);
  const auto [rows, columns, src_stride, dst_stride] = sizes;
  const size_t whole_rows = rows / kL * kL, whole_columns = columns / kL * kL;
  const auto from = [&](size_t r, size_t c) {
    return src + static_cast<ptrdiff_t>(r) * src_stride + c * sizeof(T);
  };
  const auto to = [&](size_t r, size_t c) {
    return dst + static_cast<ptrdiff_t>(c) * dst_stride + r * sizeof(T);
  };
  for (size_t c = 0; c < whole_columns; c += kL) {
    for (size_t r = 0; r < whole_rows; r += kL) {
      TransposeVectors<T>(from(r, c), src_stride, to(r, c), dst_stride);
    }
  }
  TransposeScalars<T>({rows - whole_rows, whole_columns, src_stride, dst_stride},
                      from(whole_rows, 0), to(whole_rows, 0));
  TransposeScalars<T>({rows, columns - whole_columns, src_stride, dst_stride},
                      from(0, whole_columns), to(0, whole_columns));
}

// kRows rows become dense columns: planes of colours become pixels.
template <class T, size_t kRows>
void InterleaveRows(const TransposeSizes& sizes, const uint8_t* src, uint8_t* dst) {
  const hn::Full128<T> d;
  const hn::Full128<uint8_t> d8;
  constexpr size_t kL = 16 / sizeof(T);
  size_t c = 0;
  for (; c + kL <= sizes.columns; c += kL, src += 16, dst += kRows * 16) {
    const auto row = [&](size_t i) {
      return hn::BitCast(d, hn::LoadU(d8, src + static_cast<ptrdiff_t>(i) * sizes.src_stride));
    };
    alignas(16) T some[kRows * kL];
    if constexpr (kRows == 2) {
      hn::StoreInterleaved2(row(0), row(1), d, some);
    } else if constexpr (kRows == 3) {
      hn::StoreInterleaved3(row(0), row(1), row(2), d, some);
    } else {
      hn::StoreInterleaved4(row(0), row(1), row(2), row(3), d, some);
    }
    std::memcpy(dst, some, sizeof(some));
  }
  TransposeScalars<T>({kRows, sizes.columns - c, sizes.src_stride, sizes.dst_stride}, src, dst);
}

// The reverse: kColumns dense columns become rows.
template <class T, size_t kColumns>
void SeparateColumns(const TransposeSizes& sizes, const uint8_t* src, uint8_t* dst) {
  const hn::Full128<T> d;
  const hn::Full128<uint8_t> d8;
  constexpr size_t kL = 16 / sizeof(T);
  size_t r = 0;
  for (; r + kL <= sizes.rows; r += kL, src += kColumns * 16, dst += 16) {
    const auto store = [&](size_t i, hn::Vec<decltype(d)> v) {
      hn::StoreU(hn::BitCast(d8, v), d8, dst + static_cast<ptrdiff_t>(i) * sizes.dst_stride);
    };
    alignas(16) T some[kColumns * kL];
    std::memcpy(some, src, sizeof(some));
    hn::Vec<decltype(d)> v0, v1, v2, v3;
    if constexpr (kColumns == 2) {
      hn::LoadInterleaved2(d, some, v0, v1);
    } else if constexpr (kColumns == 3) {
      hn::LoadInterleaved3(d, some, v0, v1, v2);
    } else {
      hn::LoadInterleaved4(d, some, v0, v1, v2, v3);
      store(3, v3);
    }
    store(0, v0);
    store(1, v1);
    if constexpr (kColumns > 2) store(2, v2);
  }
  TransposeScalars<T>({sizes.rows - r, kColumns, sizes.src_stride, sizes.dst_stride}, src, dst);
}

// Whether the matrix had 2, 3 or 4 rows or columns that one of these could take.
template <class T>
bool TransposeFew(const TransposeSizes& sizes, const uint8_t* src, uint8_t* dst) {
  const auto dense = [](size_t count) { return static_cast<ptrdiff_t>(count * sizeof(T)); };
  using Run = void (*)(const TransposeSizes&, const uint8_t*, uint8_t*);
  constexpr size_t kLeast = 2, kMost = 4;
  if (sizes.rows >= kLeast && sizes.rows <= kMost && sizes.dst_stride == dense(sizes.rows)) {
    static constexpr Run kRuns[] = {&InterleaveRows<T, 2>, &InterleaveRows<T, 3>,
                                    &InterleaveRows<T, 4>};
    kRuns[sizes.rows - kLeast](sizes, src, dst);
    return true;
  }
  if (sizes.columns >= kLeast && sizes.columns <= kMost &&
      sizes.src_stride == dense(sizes.columns)) {
    static constexpr Run kRuns[] = {&SeparateColumns<T, 2>, &SeparateColumns<T, 3>,
                                    &SeparateColumns<T, 4>};
    kRuns[sizes.columns - kLeast](sizes, src, dst);
    return true;
  }
  return false;
}

template <class T>
void TransposeOf(const TransposeSizes& sizes, const uint8_t* src, uint8_t* dst) {
  constexpr size_t kSide = kLine / sizeof(T);
  if constexpr (sizeof(T) <= 4) {
    if (TransposeFew<T>(sizes, src, dst)) return;
  }
  for (size_t c = 0; c < sizes.columns; c += kSide) {
    for (size_t r = 0; r < sizes.rows; r += kSide) {
      const uint8_t* from = src + static_cast<ptrdiff_t>(r) * sizes.src_stride + c * sizeof(T);
      uint8_t* to = dst + static_cast<ptrdiff_t>(c) * sizes.dst_stride + r * sizeof(T);
      const size_t rows = std::min(kSide, sizes.rows - r);
      const size_t columns = std::min(kSide, sizes.columns - c);
      if (rows == kSide && columns == kSide) {
        TransposeBlock<T>(from, sizes.src_stride, to, sizes.dst_stride);
      } else {
        TransposePart<T>({rows, columns, sizes.src_stride, sizes.dst_stride}, from, to);
      }
    }
  }
}

// Elements of 16 bytes need no shuffling.
struct Bytes16 {
  uint64_t low, high;
};

}  // namespace

void TransposeTiles(const TransposeSizes& sizes, size_t element_size, const uint8_t* src,
                    uint8_t* dst) {
  switch (element_size) {
    case 1:
      return TransposeOf<uint8_t>(sizes, src, dst);
    case 2:
      return TransposeOf<uint16_t>(sizes, src, dst);
    case 4:
      return TransposeOf<uint32_t>(sizes, src, dst);
    case 8:
      return TransposeOf<uint64_t>(sizes, src, dst);
    default:
      return TransposeScalars<Bytes16>(sizes, src, dst);
  }
}

}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();
