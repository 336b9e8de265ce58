// The micro-kernels of the matrix product: a tile of a few rows by one panel of columns, its sums
// kept in registers over the whole depth of a block. Included once per target.
#if defined(TENON_KERNELS_GEMM_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_GEMM_TILE_INL_H_
#undef TENON_KERNELS_GEMM_TILE_INL_H_
#else
#define TENON_KERNELS_GEMM_TILE_INL_H_
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <array>
#include <cstddef>
#include <utility>

#include "kernels/fused-inl.h"
#include "kernels/min_max-inl.h"
#include "kernels/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// 14 x 2 sums, two vectors of B and one element of A fill 31 of the 32 registers of AVX-512 and
// NEON; 6 x 2 sums fill 15 of the 16 that AVX2 and SSE have. Engines of WebAssembly need more of
// the 16 for themselves and spill more than 8 sums.
inline constexpr size_t kGemmMr = HWY_TARGET <= HWY_AVX3 || HWY_ARCH_ARM_A64 ? 14
                                  : HWY_ARCH_WASM                            ? 4
                                                                             : 6;
inline constexpr size_t kGemmPanelVectors = 2;
// Whether the processor widens float16 numbers itself, beside multiplications.
inline constexpr bool kWidensHalves = HWY_TARGET <= HWY_AVX2 || HWY_ARCH_ARM_A64;
using GemmTag = hn::ScalableTag<float>;
inline constexpr size_t kGemmLanes = HWY_MAX_BYTES / sizeof(float);
inline constexpr size_t kGemmNr = kGemmPanelVectors * kGemmLanes;

// The epilogue of a tile's sums. Pointers are at the tile's first element.
struct TileOutput {
  float* c;
  size_t ldc;
  float alpha;
  float beta;                 // factor of C's old value; 0: C is not read
  const float* bias_columns;  // null: none, as below
  const float* bias_rows;
  const float* residual;
  size_t ldr;
  bool is_relu;  // the activation, where it is this one

  // Moves the pointers to the element that lies so far from the one of `corner`. Nothing else is
  // copied: whole structures that are written in parts are slow to read.
  void PointFrom(const TileOutput& corner, size_t row, size_t column) {
    c = corner.c + row * ldc + column;
    if (bias_columns) bias_columns = corner.bias_columns + column;
    if (bias_rows) bias_rows = corner.bias_rows + row;
    if (residual) residual = corner.residual + row * ldr + column;
  }
};

// One micro-tile: `depth` outer products of a column of A and a row of B. T: the elements of B,
// float or hwy::float16_t.
template <class T>
struct TileOf {
  const float* a;
  size_t a_row_stride;
  size_t a_depth_stride;
  const T* b;
  size_t b_depth_stride;
  size_t depth;
  // What to prefetch, `next_stride` elements further at each step: the data of the next panel. If
  // several tiles read this panel, each prefetches its share of the next one. A single tile
  // prefetches its own panel and, near its end, the next one.
  const T* next;
  size_t next_stride;
  bool alone;
  bool prefetches;    // else nothing of B is
  bool prefetches_c;  // before the sums are computed: writing waits for lines from memory
  TileOutput output;
  float* widened = nullptr;  // where tiles of float16 numbers may keep them as floats
};
using Tile = TileOf<float>;
using HalfTile = TileOf<hwy::float16_t>;

HWY_INLINE hn::Vec<GemmTag> LoadElements(const float* p) { return hn::LoadU(GemmTag(), p); }
HWY_INLINE hn::Vec<GemmTag> LoadElements(const hwy::float16_t* p) {
  return hn::PromoteTo(GemmTag(), hn::LoadU(hn::Rebind<hwy::float16_t, GemmTag>(), p));
}

struct WholeVector {
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const float* p) const {
    return hn::LoadU(d, p);
  }
  template <class D>
  HWY_INLINE void Store(hn::Vec<D> v, D d, float* p) const {
    hn::StoreU(v, d, p);
  }
};

struct PartialVector {
  size_t count;
  template <class D>
  HWY_INLINE hn::Vec<D> Load(D d, const float* p) const {
    return LoadPartial(d, p, count);
  }
  template <class D>
  HWY_INLINE void Store(hn::Vec<D> v, D d, float* p) const {
    StorePartial(v, d, p, count);
  }
};

// changed(sum, row, column) takes the place of each vector of a tile.
template <size_t kRows, size_t kVectors, class F>
HWY_INLINE void ChangeSums(hn::Vec<GemmTag> (&sums)[kRows][kVectors], F changed) {
#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) sums[r][v] = changed(sums[r][v], r, v * kGemmLanes);
  }
}

// Stores alpha * sum + beta * C + bias + residual, or its Relu, for the vectors from (row, column)
// of a tile on. Each term is asked for once for all of them: shallow products spend an eighth of
// their time here.
template <class Access, size_t kRows, size_t kVectors>
HWY_INLINE void StoreVectors(Access access, const TileOutput& out, size_t row, size_t column,
                             hn::Vec<GemmTag> (&sums)[kRows][kVectors]) {
  using V = hn::Vec<GemmTag>;
  const GemmTag d;
  float* const c = out.c + row * out.ldc + column;
  const V alpha = hn::Set(d, out.alpha), beta = hn::Set(d, out.beta);
  ChangeSums(sums, [=](V sum, size_t, size_t) HWY_ATTR { return hn::Mul(alpha, sum); });
  if (out.beta != 0) {
    ChangeSums(sums, [&](V sum, size_t r, size_t v) HWY_ATTR {
      return hn::MulAdd(beta, access.Load(d, c + r * out.ldc + v), sum);
    });
  }
  if (out.bias_columns) {
    ChangeSums(sums, [&](V sum, size_t, size_t v) HWY_ATTR {
      return hn::Add(sum, access.Load(d, out.bias_columns + column + v));
    });
  }
  if (out.bias_rows) {
    ChangeSums(sums, [&](V sum, size_t r, size_t)
                         HWY_ATTR { return hn::Add(sum, hn::Set(d, out.bias_rows[row + r])); });
  }
  if (out.residual) {
    const float* const residual = out.residual + row * out.ldr + column;
    ChangeSums(sums, [&](V sum, size_t r, size_t v) HWY_ATTR {
      return hn::Add(sum, access.Load(d, residual + r * out.ldr + v));
    });
  }
  if (out.is_relu) {
    ChangeSums(sums, [&](V sum, size_t, size_t) HWY_ATTR { return MaxOrSecond(hn::Zero(d), sum); });
  }
  ChangeSums(sums, [&](V sum, size_t r, size_t v) HWY_ATTR {
    access.Store(sum, d, c + r * out.ldc + v);
    return sum;
  });
}

// The position of a micro-kernel in its operands. `kDepthStride` is that of A; 0 if it is not
// known.
template <class T, size_t kRows, size_t kVectors, size_t kDepthStride, bool kKeeps>
struct TileCursor {
  // Three rows of A share a pointer where the address forms p, p + s and p + 2 s are free.
  static constexpr size_t kShared = HWY_ARCH_WASM ? 1 : 3;
  static constexpr size_t kGroups = (kRows + kShared - 1) / kShared;

  static constexpr size_t kLine = 64 / sizeof(T);

  HWY_INLINE explicit TileCursor(const TileOf<T>& tile)
      : a_row_stride(tile.a_row_stride),
        a_depth_stride(kDepthStride != 0 ? kDepthStride : tile.a_depth_stride),
        b(tile.b),
        b_stride(tile.b_depth_stride),
        widened(tile.widened) {
#pragma GCC unroll 16
    for (size_t g = 0; g < kGroups; ++g) a[g] = tile.a + kShared * g * a_row_stride;
  }

  HWY_INLINE void Prefetch() const {
#pragma GCC unroll 2
    for (size_t i = 0; i < kVectors * kGemmLanes; i += kLine) hwy::Prefetch(ahead + i);
  }

  // Keeps the compiler from giving every step of an unrolled loop pointers of its own, of which
  // WebAssembly's engines run out.
  HWY_INLINE void KeepPointers() {
#if HWY_ARCH_WASM
    for (const float* HWY_RESTRICT& row : a) asm("" : "+r"(row));
    asm("" : "+r"(b));
#endif
  }

  // Adds one outer product and moves one step down the depth.
  HWY_INLINE void Step(hn::Vec<GemmTag> (&sums)[kRows][kVectors]) {
    const GemmTag d;
    hn::Vec<GemmTag> row_of_b[kVectors];
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) row_of_b[v] = LoadElements(b + v * kGemmLanes);
    if constexpr (kKeeps) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        hn::Store(row_of_b[v], d, widened + v * kGemmLanes);
      }
      widened += kVectors * kGemmLanes;
    }
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
      const hn::Vec<GemmTag> element = hn::Set(d, a[r / kShared][(r % kShared) * a_row_stride]);
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) {
        sums[r][v] = FastMulAdd(element, row_of_b[v], sums[r][v]);
      }
    }
#pragma GCC unroll 16
    for (size_t g = 0; g < kGroups; ++g) a[g] += kDepthStride != 0 ? kDepthStride : a_depth_stride;
    b += b_stride;
    ahead += ahead_stride;
  }

  const size_t a_row_stride, a_depth_stride;
  const float* HWY_RESTRICT a[kGroups];
  const T* HWY_RESTRICT b;
  const size_t b_stride;
  const T* ahead = nullptr;
  size_t ahead_stride = 0;
  float* HWY_RESTRICT widened;
};

template <size_t kRows, size_t kVectors, size_t kDepthStride, bool kKeeps, class T>
HWY_INLINE void RunTileOf(const TileOf<T>& tile) {
  const GemmTag d;
  using V = hn::Vec<GemmTag>;
  // A fused multiply-add takes 4 cycles and two may start in each: fewer than 8 sums would wait
  // for each other, so flat tiles keep several partial sums.
  // Where rows are cut into 3 and 4 by the number of threads, both must add in the same order.
  constexpr size_t kSums = (HWY_ARCH_WASM && kRows == 3 ? 4 : kRows) * kVectors;
  constexpr size_t kSets = kSums >= 8 ? 1 : kSums >= 4 ? 2 : 4;
  constexpr size_t kShortUnroll = sizeof(T) < sizeof(float) ? 1 : 2;
  constexpr size_t kUnroll = kSets == 1 && (kRows > 4 || HWY_ARCH_WASM) ? kShortUnroll : 4;
  static_assert(kUnroll % kSets == 0);
  // Flat tiles read B at memory speed and prefetch 8 KiB ahead. Taller tiles leave more time.
  constexpr size_t kAheadBytes = kRows <= 6 ? 8192 : 2048;
  constexpr size_t kAheadDepth = kAheadBytes / (kVectors * kGemmLanes * sizeof(T));

  V sums[kSets][kRows][kVectors];
#pragma GCC unroll 4
  for (size_t s = 0; s < kSets; ++s) {
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
      for (size_t v = 0; v < kVectors; ++v) sums[s][r][v] = hn::Zero(d);
    }
  }

  if (tile.prefetches_c) {
#pragma GCC unroll 16
    for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 2
      for (size_t line = 0; line < kVectors * kGemmLanes; line += 16) {
        hwy::Prefetch(tile.output.c + r * tile.output.ldc + line);
      }
    }
  }
  TileCursor<T, kRows, kVectors, kDepthStride, kKeeps> cursor(tile);
  // Without prefetching, the instructions for it name what is read anyway, which costs nothing.
  cursor.ahead = cursor.b + (tile.prefetches ? kAheadDepth : 0) * cursor.b_stride;
  cursor.ahead_stride = cursor.b_stride;
  const size_t next_part = !tile.prefetches                         ? 0
                           : tile.alone && tile.depth > kAheadDepth ? kAheadDepth
                                                                    : tile.depth;
  // Of whole unrolled steps, so that prefetching does not change the order of the sums.
  const size_t first_part = (tile.depth - next_part) / kUnroll * kUnroll;
  size_t remaining = first_part;
  for (int part = 0; part < 2; ++part) {
    for (; remaining >= kUnroll; remaining -= kUnroll) {
      cursor.KeepPointers();
#pragma GCC unroll 4
      for (size_t u = 0; u < kUnroll; ++u) {
        cursor.Prefetch();
        cursor.Step(sums[u % kSets]);
      }
    }
    for (; remaining != 0; --remaining) cursor.Step(sums[0]);
    remaining = tile.depth - first_part;
    cursor.ahead = tile.next;
    cursor.ahead_stride = tile.next_stride;
  }

#pragma GCC unroll 16
  for (size_t r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (size_t v = 0; v < kVectors; ++v) {
      V& sum = sums[0][r][v];
      if constexpr (kSets == 2) sum = hn::Add(sum, sums[1][r][v]);
      if constexpr (kSets == 4) {
        sum = hn::Add(hn::Add(sum, sums[2][r][v]), hn::Add(sums[1][r][v], sums[3][r][v]));
      }
    }
  }
  StoreVectors(WholeVector{}, tile.output, 0, 0, sums[0]);
}

template <class T, size_t kRows, size_t kVectors, bool kKeeps = false>
void RunTile(const TileOf<T>& tile) {
  // WebAssembly has only constant offsets for free.
  if (HWY_ARCH_WASM && tile.a_depth_stride == 1) {
    return RunTileOf<kRows, kVectors, 1, kKeeps>(tile);
  }
  RunTileOf<kRows, kVectors, 0, kKeeps>(tile);
}

using RunTileFunction = void (*)(const Tile&);

template <size_t... kRows>
constexpr auto TileFunctions(std::index_sequence<kRows...>) {
  return std::array<std::array<RunTileFunction, kGemmPanelVectors>, sizeof...(kRows)>{
      {{&RunTile<float, kRows + 1, 1>, &RunTile<float, kRows + 1, 2>}...}};
}
// [rows - 1][vectors - 1]
inline constexpr auto kTileFunctions = TileFunctions(std::make_index_sequence<kGemmMr>());

inline void RunTile(const Tile& tile, size_t rows, size_t vectors) {
  kTileFunctions[rows - 1][vectors - 1](tile);
}

// Tiles of float16 numbers, whose panels are never narrow. Those of at least kKeepingRows rows, as
// the first of several has, also keep the floats for the others.
inline constexpr size_t kKeepingRows = std::min<size_t>(5, kGemmMr / 2 + 1);
using RunHalfTileFunction = void (*)(const HalfTile&);

// [rows - 1]
template <size_t... kRows>
constexpr auto HalfTileFunctions(std::index_sequence<kRows...>) {
  return std::array<RunHalfTileFunction, sizeof...(kRows)>{
      {&RunTile<hwy::float16_t, kRows + 1, kGemmPanelVectors, (kRows + 1 >= kKeepingRows)>...}};
}
inline constexpr size_t kHalfTileRows = kWidensHalves ? kGemmMr : 0;
inline constexpr auto kHalfTileFunctions =
    HalfTileFunctions(std::make_index_sequence<kHalfTileRows>());

inline void RunTile(const HalfTile& tile, size_t rows, size_t /*vectors*/) {
  if constexpr (kWidensHalves) kHalfTileFunctions[rows - 1](tile);
}

// Stores rows x columns sums that lie in a buffer, `ld` apart; reads its rows in whole vectors.
inline void StoreSums(const TileOutput& output, const float* sums, size_t ld, size_t rows,
                      size_t columns) {
  const GemmTag d;
  for (size_t r = 0; r < rows; ++r) {
    const auto store = [&](auto access, size_t column) HWY_ATTR {
      hn::Vec<GemmTag> sum[1][1] = {{hn::LoadU(d, sums + r * ld + column)}};
      StoreVectors(access, output, r, column, sum);
    };
    size_t column = 0;
    for (; column + kGemmLanes <= columns; column += kGemmLanes) store(WholeVector{}, column);
    if (column < columns) store(PartialVector{columns - column}, column);
  }
}

// Computes a tile whose last vector is partial or missing, through a buffer of whole vectors,
// because the micro-kernels store whole vectors.
template <class T>
void RunPartialTile(const TileOf<T>& tile, size_t rows, size_t columns) {
  HWY_ALIGN float sums[kGemmMr * kGemmNr];
  TileOf<T> raw = tile;
  raw.output = {.c = sums, .ldc = kGemmNr, .alpha = 1};
  RunTile(raw, rows, columns > kGemmLanes ? 2 : 1);
  StoreSums(tile.output, sums, kGemmNr, rows, columns);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
