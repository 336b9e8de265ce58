#include "kernels/gemm/gemm_int8.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm_int8.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "kernels/dispatch.h"
#include "kernels/gemm/gemm_int8_tile.h"
#include "kernels/partial-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using IntTag = hn::ScalableTag<int32_t>;
using WordTag = hn::RepartitionToNarrow<IntTag>;
inline constexpr size_t kLanes = HWY_MAX_BYTES / sizeof(int32_t);
inline constexpr size_t kNr = 2 * kLanes;
inline constexpr size_t kMr = HWY_TARGET <= HWY_AVX3 ? 14 : 6;
static_assert(kNr <= kMaxInt8TileColumns && kMr <= kMaxInt8TileRows);

// sum + a[2 i] * b[2 i] + a[2 i + 1] * b[2 i + 1] in lane i.
HWY_INLINE hn::Vec<IntTag> AddPairs(hn::Vec<WordTag> a, hn::Vec<WordTag> b, hn::Vec<IntTag> sum) {
  const IntTag di;
#if HWY_ARCH_X86
  hn::Vec<IntTag> unused = hn::Zero(di);
  return hn::ReorderWidenMulAccumulate(di, a, b, sum, unused);
#else
  const auto a32 = hn::BitCast(di, a), b32 = hn::BitCast(di, b);
  const auto even = hn::Mul(hn::ShiftRight<16>(hn::ShiftLeft<16>(a32)),
                            hn::ShiftRight<16>(hn::ShiftLeft<16>(b32)));
  const auto odd = hn::Mul(hn::ShiftRight<16>(a32), hn::ShiftRight<16>(b32));
  return hn::Add(sum, hn::Add(even, odd));
#endif
}

template <size_t kRows>
void RunTile(const int16_t* HWY_RESTRICT a, const uint8_t* HWY_RESTRICT panel, size_t depth,
             int32_t* HWY_RESTRICT sums) {
  const IntTag di;
  const WordTag dw;
  const hn::Rebind<uint8_t, WordTag> db;
  hn::Vec<IntTag> acc[kRows][2];
#pragma GCC unroll 14
  for (size_t r = 0; r < kRows; ++r) acc[r][0] = acc[r][1] = hn::Zero(di);
  for (size_t p = 0; p < depth; p += 2, panel += 2 * kNr) {
    const auto b0 = hn::PromoteTo(dw, hn::LoadU(db, panel));
    const auto b1 = hn::PromoteTo(dw, hn::LoadU(db, panel + kNr));
#pragma GCC unroll 14
    for (size_t r = 0; r < kRows; ++r) {
      int32_t two;
      std::memcpy(&two, a + r * depth + p, sizeof(two));
      const auto pair = hn::BitCast(dw, hn::Set(di, two));
      acc[r][0] = AddPairs(b0, pair, acc[r][0]);
      acc[r][1] = AddPairs(b1, pair, acc[r][1]);
    }
  }
#pragma GCC unroll 14
  for (size_t r = 0; r < kRows; ++r) {
    hn::StoreU(acc[r][0], di, sums + r * kNr);
    hn::StoreU(acc[r][1], di, sums + r * kNr + kLanes);
  }
}

template <size_t... kRows>
constexpr auto TileFunctions(std::index_sequence<kRows...>) {
  return std::array{&RunTile<kRows + 1>...};
}

void RunAnyTile(const void* a, const uint8_t* panel, size_t depth, size_t rows, int32_t* sums) {
  static constexpr auto kFunctions = TileFunctions(std::make_index_sequence<kMr>());
  kFunctions[rows - 1](static_cast<const int16_t*>(a), panel, depth, sums);
}

// Packs one row and sums it. The loops are scalar; the compiler vectorizes them.
template <class Out, class In>
int32_t PackRow(const In* HWY_RESTRICT from, size_t stride, size_t k, size_t depth,
                Out* HWY_RESTRICT out) {
  constexpr int kOffset = std::is_signed_v<In> ? 0 : 128;
  int32_t sum = 0;
  if (stride == 1) {
    for (size_t p = 0; p < k; ++p) {
      const auto value = static_cast<Out>(from[p] - kOffset);
      out[p] = value;
      sum += value;
    }
  } else {
    for (size_t p = 0; p < k; ++p) {
      out[p] = static_cast<Out>(from[p * stride] - kOffset);
      sum += out[p];
    }
  }
  std::fill(out + k, out + depth, Out{0});
  return sum;
}

template <class Out>
void PackRowsAs(const Int8Matrix& a, size_t rows, size_t k, size_t depth, Out* out,
                int32_t* row_sums) {
  for (size_t i = 0; i < rows; ++i, out += depth) {
    const uint8_t* row = a.data + i * a.row_stride;
    row_sums[i] =
        a.is_signed ? PackRow(reinterpret_cast<const int8_t*>(row), a.column_stride, k, depth, out)
                    : PackRow(row, a.column_stride, k, depth, out);
  }
}

void PackRows(const Int8TileShape& shape, const Int8Matrix& a, size_t rows, size_t k, void* out,
              int32_t* row_sums) {
  if (shape.a_bytes == 1) {
    PackRowsAs(a, rows, k, shape.Depth(k), static_cast<int8_t*>(out), row_sums);
  } else {
    PackRowsAs(a, rows, k, shape.Depth(k), static_cast<int16_t*>(out), row_sums);
  }
}

// Writes the rows of a group, each of nr bytes, element by element: r0[0], r1[0], ..., r0[1], ...
template <size_t kGroup>
void Interleave(const uint8_t (&rows)[kGroup][kMaxInt8TileColumns], size_t nr, uint8_t* out) {
  const hn::CappedTag<uint8_t, 16> d;
  const size_t step = std::min(hn::Lanes(d), nr);
  const hn::CappedTag<uint8_t, 8> half;
  const auto store = [&](auto tag, size_t j) HWY_ATTR {
    if constexpr (kGroup == 4) {
      hn::StoreInterleaved4(hn::LoadU(tag, rows[0] + j), hn::LoadU(tag, rows[1] + j),
                            hn::LoadU(tag, rows[2] + j), hn::LoadU(tag, rows[3] + j), tag,
                            out + j * kGroup);
    } else {
      hn::StoreInterleaved2(hn::LoadU(tag, rows[0] + j), hn::LoadU(tag, rows[1] + j), tag,
                            out + j * kGroup);
    }
  };
  for (size_t j = 0; j < nr; j += step) {
    if (step == 16) {
      store(d, j);
    } else {
      store(half, j);
    }
  }
}

template <size_t kGroup>
void PackPanelOf(const Int8TileShape& shape, const Int8Matrix& b, size_t columns, size_t k,
                 uint8_t* out, int32_t* column_sums) {
  const uint8_t flip = b.is_signed ? 0x80 : 0;
  const size_t nr = shape.nr;
  std::fill_n(column_sums, nr, 0);
  uint8_t rows[kGroup][kMaxInt8TileColumns] = {};
  for (size_t p = 0; p < k; p += kGroup, out += kGroup * nr) {
    for (size_t g = 0; g < kGroup; ++g) {
      uint8_t* row = rows[g];
      if (p + g >= k) {
        std::fill_n(row, nr, uint8_t{0});
        continue;
      }
      const uint8_t* from = b.data + (p + g) * b.row_stride;
      if (b.column_stride == 1 && columns == nr) {
        for (size_t j = 0; j < nr; ++j) row[j] = from[j] ^ flip;
      } else {
        for (size_t j = 0; j < columns; ++j) row[j] = from[j * b.column_stride] ^ flip;
      }
      for (size_t j = 0; j < nr; ++j) column_sums[j] += row[j];
    }
    Interleave<kGroup>(rows, nr, out);
  }
}

void PackPanel(const Int8TileShape& shape, const Int8Matrix& b, size_t columns, size_t k,
               bool /*lasts*/, uint8_t* out, int32_t* column_sums) {
  if (shape.group == 4) {
    PackPanelOf<4>(shape, b, columns, k, out, column_sums);
  } else {
    PackPanelOf<2>(shape, b, columns, k, out, column_sums);
  }
}

// The same for whole rows of a panel that lie in memory.
void PackWholePanel(const Int8Matrix& b, size_t k, uint8_t* out, int32_t* column_sums) {
  const hn::CappedTag<uint8_t, kNr> d;
  const hn::Rebind<uint16_t, decltype(d)> dw;
  constexpr size_t kPairs = 128;  // whose sums fit in 16 bits
  const auto flip = hn::Set(d, b.is_signed ? 0x80 : 0);
  std::fill_n(column_sums, kNr, 0);
  for (size_t p = 0; p < k;) {
    auto sums = hn::Zero(dw);
    for (const size_t end = std::min(k, p + 2 * kPairs); p < end; p += 2, out += 2 * kNr) {
      const uint8_t* from = b.data + p * b.row_stride;
      const auto even = hn::Xor(hn::LoadU(d, from), flip);
      auto odd = hn::Zero(d);
      if (p + 1 < k) odd = hn::Xor(hn::LoadU(d, from + b.row_stride), flip);
      sums = hn::Add(sums, hn::Add(hn::PromoteTo(dw, even), hn::PromoteTo(dw, odd)));
      hn::StoreInterleaved2(even, odd, d, out);
    }
    uint16_t some[kNr];
    hn::StoreU(sums, dw, some);
    for (size_t j = 0; j < kNr; ++j) column_sums[j] += some[j];
  }
}

template <class T, class V>
HWY_INLINE void StoreQuantized(V scaled, int32_t zero_point, T* c, size_t count) {
  const hn::ScalableTag<float> df;
  const IntTag di;
  const hn::Rebind<T, IntTag> dt;
  const auto bound = [&](int32_t limit)
                         HWY_ATTR { return hn::Set(df, static_cast<float>(limit - zero_point)); };
  scaled = hn::Max(scaled, bound(std::numeric_limits<T>::min()));
  scaled = hn::Min(scaled, bound(std::numeric_limits<T>::max()));
  const auto v = hn::DemoteTo(dt, hn::Add(hn::NearestInt(scaled), hn::Set(di, zero_point)));
  if (count == kLanes) {
    hn::StoreU(v, dt, c);
  } else {
    StorePartial(v, dt, c, count);
  }
}

void StoreRow(const Int8RowOutput& row, const Int8Epilogue& e) {
  const IntTag di;
  const hn::ScalableTag<float> df;
  const auto a_zero = hn::Set(di, row.a_zero);
  const auto row_term = hn::Set(di, row.row_term);
  const auto row_bias = hn::Set(di, e.bias_rows ? e.bias_rows[row.row] : 0);
  for (size_t j = 0; j < row.count; j += kLanes) {
    const size_t count = std::min(kLanes, row.count - j);
    const size_t column = row.column + j;
    auto sum =
        hn::Sub(hn::LoadU(di, row.sums + j), hn::Mul(a_zero, hn::LoadU(di, row.column_sums + j)));
    sum = hn::Add(sum, hn::Mul(row_term, hn::LoadU(di, row.b_zero + j)));
    sum = hn::Add(sum, row_bias);
    if (e.bias_columns) sum = hn::Add(sum, LoadUpTo(di, e.bias_columns + column, count));
    if (e.type == Int8Output::kInt32) {
      StoreUpTo(sum, di, static_cast<int32_t*>(row.c) + j, count);
      continue;
    }
    auto scale = hn::Set(df, e.scale_rows ? e.scale * e.scale_rows[row.row] : e.scale);
    if (e.scale_columns) {
      scale = hn::Mul(scale, LoadUpTo(df, e.scale_columns + column, count));
    }
    auto scaled = hn::Mul(hn::ConvertTo(df, sum), scale);
    if (e.type == Int8Output::kFloat) {
      if (e.float_bias) scaled = hn::Add(scaled, LoadUpTo(df, e.float_bias + column, count));
      StoreUpTo(scaled, df, static_cast<float*>(row.c) + j, count);
    } else if (e.type == Int8Output::kUint8) {
      StoreQuantized(scaled, e.zero_point, static_cast<uint8_t*>(row.c) + j, count);
    } else {
      StoreQuantized(scaled, e.zero_point, static_cast<int8_t*>(row.c) + j, count);
    }
  }
}

// S in the columns from j on, where `sums` are those of the row.
HWY_INLINE hn::Vec<IntTag> TileSum(const Int8TileOutput& tile, const int32_t* sums,
                                   hn::Vec<IntTag> row_term, hn::Vec<IntTag> row_factor, size_t j) {
  const IntTag di;
  const auto sum =
      hn::Add(hn::Add(hn::LoadU(di, sums + j), hn::LoadU(di, tile.column_terms + j)), row_term);
  if (!tile.column_factors) return sum;
  return hn::Add(sum, hn::Mul(row_factor, hn::LoadU(di, tile.column_factors + j)));
}

template <class T>
void StoreTileAs(const Int8TileOutput& tile) {
  const IntTag di;
  const hn::ScalableTag<float> df;
  auto* c = static_cast<T*>(tile.c);
  for (size_t r = 0; r < tile.rows; ++r, c += tile.ldc) {
    const int32_t* sums = tile.sums + r * kNr;
    const auto row_term = hn::Set(di, tile.row_terms[r]);
    const auto row_factor = hn::Set(di, tile.row_factors ? tile.row_factors[r] : 0);
    const auto row_scale = hn::Set(df, tile.row_scales[r]);
    for (size_t j = 0; j < tile.columns; j += kLanes) {
      const auto sum = TileSum(tile, sums, row_term, row_factor, j);
      auto scale = row_scale;
      if (tile.column_scales) scale = hn::Mul(scale, hn::LoadU(df, tile.column_scales + j));
      StoreQuantized(hn::Mul(hn::ConvertTo(df, sum), scale), tile.zero_point, c + j,
                     std::min(kLanes, tile.columns - j));
    }
  }
}

void StoreTile(const Int8TileOutput& tile) {
  if (tile.is_signed) {
    StoreTileAs<int8_t>(tile);
  } else {
    StoreTileAs<uint8_t>(tile);
  }
}

void StoreFloatTile(const Int8TileOutput& tile) {
  const IntTag di;
  const hn::ScalableTag<float> df;
  auto* c = static_cast<float*>(tile.c);
  for (size_t r = 0; r < tile.rows; ++r, c += tile.ldc) {
    const int32_t* sums = tile.sums + r * kNr;
    const auto row_term = hn::Set(di, tile.row_terms[r]);
    const auto row_factor = hn::Set(di, tile.row_factors ? tile.row_factors[r] : 0);
    const auto row_scale = hn::Set(df, tile.row_scales[r]);
    for (size_t j = 0; j < tile.columns; j += kLanes) {
      const auto sum = TileSum(tile, sums, row_term, row_factor, j);
      auto scale = row_scale;
      if (tile.column_scales) scale = hn::Mul(scale, hn::LoadU(df, tile.column_scales + j));
      auto value = hn::Mul(hn::ConvertTo(df, sum), scale);
      if (tile.column_biases) value = hn::Add(value, hn::LoadU(df, tile.column_biases + j));
      StoreUpTo(value, df, c + j, tile.columns - j);
    }
  }
}

}  // namespace

const Int8GemmTable kInt8GemmTable = {.shape = {.mr = kMr, .nr = kNr, .group = 2, .a_bytes = 2},
                                      .run_tile = &RunAnyTile,
                                      .pack_rows = &PackRows,
                                      .pack_panel = &PackPanel,
                                      .store_row = &StoreRow,
                                      .pack_whole_rows = nullptr,
                                      .pack_whole_panel = &PackWholePanel,
                                      .sum_row_in_place = nullptr,
                                      .store_tile = &StoreTile,
                                      .store_float_tile = &StoreFloatTile,
                                      .pack_pixels = nullptr};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {
namespace {

bool use_dot_products = true;

// The table for AVX-512 with the tile that has dot products, or null.
const Int8GemmTable* DotProductTable() {
#if HWY_TARGETS & HWY_AVX3
  static const std::pair<bool, Int8GemmTable> found = [] {
    Int8GemmTable table = N_AVX3::kInt8GemmTable;
    const VnniFunctions functions = FindVnni(&table.shape);
    if (functions.run_tile == nullptr) return std::pair(false, table);
    table.run_tile = functions.run_tile;
    table.pack_whole_rows = functions.pack_whole_rows;
    table.pack_whole_panel = functions.pack_whole_panel;
    table.sum_row_in_place = functions.sum_row_in_place;
    table.store_tile = functions.store_tile;
    table.pack_pixels = functions.pack_pixels;
    return std::pair(true, table);
  }();
  return found.first ? &found.second : nullptr;
#else
  return nullptr;
#endif
}

size_t DivideUp(size_t x, size_t y) { return (x + y - 1) / y; }
size_t RoundUp(size_t x, size_t y) { return DivideUp(x, y) * y; }

// A packed panel, its column sums, and the rests.
size_t PanelStride(const Int8GemmTable& table, size_t k) {
  const size_t rests = table.rest_bytes ? table.rest_bytes(table.shape.Depth(k)) : 0;
  return table.shape.PanelBytes(k) + RoundUp(table.shape.nr * sizeof(int32_t), 64) + rests;
}

// Rows and panels of one task. A block of rows stays in the L2 cache while the panels are streamed.
struct Int8GemmGrid {
  size_t block_rows, task_panels;
  size_t row_tasks, column_tasks;

  Int8GemmGrid(const Int8GemmArgs& args, const Int8TileShape& shape) {
    constexpr size_t kBlockBytes = 128 * 1024;
    constexpr size_t kTaskCost = 8'000'000;  // multiply-adds
    const size_t row_bytes = std::max<size_t>(1, shape.RowBytes(args.k));
    const size_t tiles = std::clamp<size_t>(kBlockBytes / row_bytes / shape.mr, 1, 8);
    row_tasks = DivideUp(args.m, tiles * shape.mr);
    block_rows = DivideUp(std::max<size_t>(1, args.m), std::max<size_t>(1, row_tasks));
    const size_t panels = DivideUp(args.n, shape.nr);
    // A panel that is packed on the way serves all rows, where columns make enough tasks.
    constexpr size_t kManyPanels = 8;
    size_t most_panels = std::max<size_t>(1, panels);
    if (args.packed_b == nullptr && panels >= kManyPanels) {
      block_rows = std::max<size_t>(1, args.m);
      most_panels = panels / 2;
    }
    const size_t panel_cost = (block_rows + 8) * std::max<size_t>(1, args.k) * shape.nr;
    task_panels = std::clamp<size_t>(kTaskCost / panel_cost, 1, most_panels);
    row_tasks = DivideUp(args.m, block_rows);
    column_tasks = DivideUp(panels, task_panels);
  }
};

// The zero points of the columns of a panel.
void FillZeros(const Int8GemmArgs& args, const Int8TileShape& shape, size_t column, size_t count,
               int32_t* zeros) {
  for (size_t j = 0; j < count; ++j) {
    const int32_t zero = args.b_zero ? args.b_zero[args.b_zero_per_column ? column + j : 0] : 0;
    zeros[j] = PackedZero(args.b.is_signed, shape.a_is_unsigned, zero);
  }
}

size_t ElementBytes(Int8Output type) {
  return type == Int8Output::kInt32 || type == Int8Output::kFloat ? 4 : 1;
}

// A block of packed rows.
struct PackedRows {
  const std::byte* data;
  const int32_t* sums;
  size_t first, count;
  std::byte* words;  // memory for them as words, if some panels read these
  bool has_words = false;
};

// Rows in memory, followed by their sums.
size_t RowsBytes(const Int8TileShape& shape, size_t rows, size_t k) {
  return RoundUp(rows * shape.RowBytes(k), 64) + RoundUp(rows * sizeof(int32_t), 64);
}
// Rows as words.
size_t WordsBytes(const Int8GemmTable& table, size_t rows, size_t k) {
  return table.widen_rows ? RoundUp(rows * table.shape.Depth(k) * sizeof(int16_t), 64) : 0;
}
PackedRows RowsIn(const Int8TileShape& shape, const std::byte* memory, size_t rows, size_t k) {
  const std::byte* sums = memory + RoundUp(rows * shape.RowBytes(k), 64);
  return {memory, reinterpret_cast<const int32_t*>(sums), 0, rows, nullptr};
}

// The sums of a panel's columns, before they are written to the output.
class PanelOutput {
 public:
  [[gnu::noinline]] PanelOutput(const Int8GemmArgs& args, const Int8GemmTable& table, size_t panel,
                                const int32_t* column_sums)
      : args_(args),
        table_(table),
        column_sums_(column_sums),
        column_(panel * table.shape.nr),
        count_(std::min(table.shape.nr, args.n - column_)),
        stores_tiles_(!(args.a_zero_per_row && args.b_zero_per_column) &&
                      args.epilogue.type != Int8Output::kInt32) {
    FillZeros(args, table.shape, column_, count_, zeros_);
    if (stores_tiles_) PrepareTiles();
  }

  // Stores rows of the block from `first` on, at most as many as a tile has.
  [[gnu::noinline]] void Store(const PackedRows& rows, size_t first, size_t count,
                               const int32_t* sums) const {
    if (stores_tiles_) return StoreTile(rows, first, count, sums);
    for (size_t i = 0; i < count; ++i) {
      const size_t row = rows.first + first + i;
      table_.store_row({.count = count_,
                        .sums = sums + i * table_.shape.nr,
                        .column_sums = column_sums_,
                        .b_zero = zeros_,
                        .a_zero = ZeroOf(row),
                        .row_term = static_cast<int32_t>(RowTerm(rows, first + i)),
                        .row = row,
                        .column = column_,
                        .c = At(row)},
                       args_.epilogue);
    }
  }

 private:
  int32_t ZeroOf(size_t row) const {
    return PackedZero(args_.a.is_signed, !table_.shape.a_is_unsigned,
                      args_.a_zero ? args_.a_zero[args_.a_zero_per_row ? row : 0] : 0);
  }
  uint32_t RowTerm(const PackedRows& rows, size_t i) const {
    return static_cast<uint32_t>(args_.k) * static_cast<uint32_t>(ZeroOf(rows.first + i)) -
           static_cast<uint32_t>(rows.sums[i]);
  }
  std::byte* At(size_t row) const {
    return static_cast<std::byte*>(args_.c) +
           (row * args_.ldc + column_) * ElementBytes(args_.epilogue.type);
  }

  void PrepareTiles() {
    const Int8Epilogue& epilogue = args_.epilogue;
    const uint32_t a_zero = args_.a_zero_per_row ? 0 : static_cast<uint32_t>(ZeroOf(0));
    for (size_t j = 0; j < count_; ++j) {
      uint32_t term = 0u - a_zero * static_cast<uint32_t>(column_sums_[j]);
      if (epilogue.bias_columns) term += static_cast<uint32_t>(epilogue.bias_columns[column_ + j]);
      column_terms_[j] = static_cast<int32_t>(term);
      if (epilogue.scale_columns) column_scales_[j] = epilogue.scale_columns[column_ + j];
      if (epilogue.float_bias) column_biases_[j] = epilogue.float_bias[column_ + j];
    }
  }

  void StoreTile(const PackedRows& rows, size_t first, size_t count, const int32_t* sums) const {
    const Int8Epilogue& epilogue = args_.epilogue;
    const bool has_factors = args_.a_zero_per_row || args_.b_zero_per_column;
    int32_t terms[kMaxInt8TileRows], factors[kMaxInt8TileRows];
    float scales[kMaxInt8TileRows];
    for (size_t i = 0; i < count; ++i) {
      const size_t row = rows.first + first + i;
      const uint32_t row_term = RowTerm(rows, first + i);
      uint32_t term = args_.b_zero_per_column ? 0 : row_term * static_cast<uint32_t>(zeros_[0]);
      if (epilogue.bias_rows) term += static_cast<uint32_t>(epilogue.bias_rows[row]);
      terms[i] = static_cast<int32_t>(term);
      factors[i] = args_.b_zero_per_column ? static_cast<int32_t>(row_term) : -ZeroOf(row);
      scales[i] = epilogue.scale_rows ? epilogue.scale * epilogue.scale_rows[row] : epilogue.scale;
    }
    const bool is_float = epilogue.type == Int8Output::kFloat;
    (is_float ? table_.store_float_tile : table_.store_tile)(
        {.rows = count,
         .columns = count_,
         .sums = sums,
         .row_terms = terms,
         .column_terms = column_terms_,
         .row_factors = has_factors ? factors : nullptr,
         .column_factors = !has_factors              ? nullptr
                           : args_.b_zero_per_column ? zeros_
                                                     : column_sums_,
         .row_scales = scales,
         .column_scales = epilogue.scale_columns ? column_scales_ : nullptr,
         .column_biases = epilogue.float_bias ? column_biases_ : nullptr,
         .zero_point = epilogue.zero_point,
         .is_signed = epilogue.type == Int8Output::kInt8,
         .c = At(rows.first + first),
         .ldc = args_.ldc});
  }

  const Int8GemmArgs& args_;
  const Int8GemmTable& table_;
  const int32_t* const column_sums_;
  const size_t column_, count_;
  const bool stores_tiles_;
  int32_t zeros_[kMaxInt8TileColumns] = {};
  int32_t column_terms_[kMaxInt8TileColumns] = {};
  float column_scales_[kMaxInt8TileColumns] = {};
  float column_biases_[kMaxInt8TileColumns] = {};
};

void RunPanel(const Int8GemmArgs& args, const Int8GemmTable& table, PackedRows& rows, size_t panel,
              const uint8_t* packed, const int32_t* column_sums) {
  const Int8TileShape& shape = table.shape;
  const size_t depth = shape.Depth(args.k);
  const std::byte* data = rows.data;
  size_t row_bytes = shape.RowBytes(args.k);
  if (table.reads_words && table.reads_words(packed, depth)) {
    if (!std::exchange(rows.has_words, true)) {
      table.widen_rows(rows.data, rows.count * depth, rows.words);
    }
    data = rows.words;
    row_bytes = depth * sizeof(int16_t);
  }
  alignas(64) int32_t sums[kMaxInt8TileRows * kMaxInt8TileColumns];
  const PanelOutput output(args, table, panel, column_sums);
  // Tiles of nearly equal numbers of rows.
  const size_t tiles = DivideUp(rows.count, shape.mr);
  for (size_t tile = 0, first = 0; tile < tiles; ++tile) {
    const size_t tile_rows = DivideUp(rows.count - first, tiles - tile);
    table.run_tile(data + first * row_bytes, packed, depth, tile_rows, sums);
    output.Store(rows, first, tile_rows, sums);
    first += tile_rows;
  }
}

// The same for one row and as many of the panels [first, last) as can be read where they lie.
// Returns the first of the rest.
size_t RunPanelsInPlace(const Int8GemmArgs& args, const Int8GemmTable& table,
                        const PackedRows& rows, size_t first, size_t last) {
  if (rows.count != 1 || args.packed_b || args.b.column_stride != 1 || !table.sum_row_in_place) {
    return first;
  }
  constexpr size_t kColumns = 1024;
  alignas(64) int32_t sums[kColumns];
  alignas(64) int32_t column_sums[kColumns];
  const size_t nr = table.shape.nr;
  last = std::min(last, args.n / nr);
  while (true) {
    const size_t columns = std::min(kColumns, (last - first) * nr / 64 * 64);
    if (columns == 0) return first;
    Int8Matrix corner = args.b;
    corner.data += first * nr;
    table.sum_row_in_place(rows.data, corner, args.k, columns, sums, column_sums);
    for (size_t j = 0; j < columns; j += nr, ++first) {
      PanelOutput(args, table, first, column_sums + j).Store(rows, 0, 1, sums + j);
    }
  }
}

}  // namespace

void UseInt8DotProducts(bool use) { use_dot_products = use; }

const Int8GemmTable& ActiveInt8Conv() {
  if (use_dot_products && ActiveTarget() == Target::kAvx512) {
    if (const Int8GemmTable* table = DotProductTable()) return *table;
  }
  return TENON_SELECT_TABLE(Int8GemmTable, kInt8GemmTable);
}

const Int8GemmTable& ActiveInt8Gemm() {
#if HWY_TARGETS & HWY_AVX2
  static const Int8GemmTable avx2 = [] {
    Int8GemmTable table = N_AVX2::kInt8GemmTable;
    UseAvx2Bytes(&table);
    return table;
  }();
  if (use_dot_products && ActiveTarget() == Target::kAvx2) return avx2;
#endif
  return ActiveInt8Conv();
}

size_t PackedInt8GemmBSize(size_t n, size_t k) {
  const Int8GemmTable& table = ActiveInt8Gemm();
  return DivideUp(n, table.shape.nr) * PanelStride(table, k);
}

size_t Int8GemmPanelCount(size_t n) { return DivideUp(n, ActiveInt8Gemm().shape.nr); }

void PackInt8GemmPanels(const Int8Matrix& b, size_t n, size_t k, size_t first, size_t last,
                        uint8_t* packed) {
  const Int8GemmTable& table = ActiveInt8Gemm();
  const size_t nr = table.shape.nr, stride = PanelStride(table, k);
  for (size_t panel = first; panel < last; ++panel) {
    Int8Matrix corner = b;
    corner.data += panel * nr * b.column_stride;
    uint8_t* const into = packed + panel * stride;
    table.PackPanel(corner, std::min(nr, n - panel * nr), k, true, into,
                    reinterpret_cast<int32_t*>(into + table.shape.PanelBytes(k)));
  }
}

size_t Int8GemmTaskCount(const Int8GemmArgs& args) {
  if (args.m == 0 || args.n == 0) return 0;
  const Int8GemmGrid grid(args, ActiveInt8Gemm().shape);
  return grid.row_tasks * grid.column_tasks;
}

size_t PackedInt8GemmRowsSize(const Int8GemmArgs& args) {
  const Int8TileShape& shape = ActiveInt8Gemm().shape;
  const Int8GemmGrid grid(args, shape);
  return grid.column_tasks > 1 ? RowsBytes(shape, args.m, args.k) : 0;
}

size_t PackInt8GemmRowsTaskCount(const Int8GemmArgs& args) {
  return Int8GemmGrid(args, ActiveInt8Gemm().shape).row_tasks;
}

void RunPackInt8GemmRowsTask(const Int8GemmArgs& args, size_t task, std::byte* packed) {
  const Int8GemmTable& table = ActiveInt8Gemm();
  const Int8GemmGrid grid(args, table.shape);
  const size_t first = task * grid.block_rows;
  const size_t count = std::min(grid.block_rows, args.m - first);
  const PackedRows all = RowsIn(table.shape, packed, args.m, args.k);
  Int8Matrix a = args.a;
  a.data += first * a.row_stride;
  table.PackRows(a, count, args.k, packed + first * table.shape.RowBytes(args.k),
                 const_cast<int32_t*>(all.sums) + first);
}

size_t Int8GemmScratchSize(const Int8GemmArgs& args) {
  const Int8GemmTable& table = ActiveInt8Gemm();
  const Int8GemmGrid grid(args, table.shape);
  return (args.packed_a ? 0 : RowsBytes(table.shape, grid.block_rows, args.k)) +
         WordsBytes(table, grid.block_rows, args.k) +
         (args.packed_b ? 0 : PanelStride(table, args.k));
}

void RunInt8GemmTask(const Int8GemmArgs& args, size_t task, std::byte* scratch) {
  const Int8GemmTable& table = ActiveInt8Gemm();
  const Int8TileShape& shape = table.shape;
  const Int8GemmGrid grid(args, shape);
  const size_t first = task % grid.row_tasks * grid.block_rows;
  const size_t count = std::min(grid.block_rows, args.m - first);
  PackedRows rows;
  if (args.packed_a) {
    rows = RowsIn(shape, args.packed_a, args.m, args.k);
    rows.data += first * shape.RowBytes(args.k);
    rows.sums += first;
  } else {
    rows = RowsIn(shape, scratch, grid.block_rows, args.k);
    Int8Matrix a = args.a;
    a.data += first * a.row_stride;
    table.PackRows(a, count, args.k, scratch, const_cast<int32_t*>(rows.sums));
    scratch += RowsBytes(shape, grid.block_rows, args.k);
  }
  rows.first = first;
  rows.count = count;
  rows.words = scratch;
  scratch += WordsBytes(table, grid.block_rows, args.k);

  const size_t begin = task / grid.row_tasks * grid.task_panels;
  const size_t end = std::min(begin + grid.task_panels, DivideUp(args.n, shape.nr));
  for (size_t panel = RunPanelsInPlace(args, table, rows, begin, end); panel < end; ++panel) {
    const uint8_t* packed;
    if (args.packed_b) {
      packed = args.packed_b + panel * PanelStride(table, args.k);
    } else {
      Int8Matrix corner = args.b;
      corner.data += panel * shape.nr * corner.column_stride;
      auto* const into = reinterpret_cast<uint8_t*>(scratch);
      table.PackPanel(corner, std::min(shape.nr, args.n - panel * shape.nr), args.k, false, into,
                      reinterpret_cast<int32_t*>(into + shape.PanelBytes(args.k)));
      packed = into;
    }
    const auto* column_sums = reinterpret_cast<const int32_t*>(packed + shape.PanelBytes(args.k));
    RunPanel(args, table, rows, panel, packed, column_sums);
  }
}

}  // namespace tenon::kernels
#endif
