#include "kernels/gemm/gemm.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/gemm/gemm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstring>

#include "base/stop_signal.h"
#include "kernels/dispatch.h"
#include "kernels/gemm/gemm_flat-inl.h"
#include "kernels/gemm/gemm_grid.h"
#include "kernels/gemm/gemm_pack-inl.h"
#include "kernels/gemm/gemm_store.h"
#include "kernels/gemm/gemm_tile-inl.h"
#include "kernels/unaligned.h"

#ifndef TENON_KERNELS_GEMM_CPP_
#define TENON_KERNELS_GEMM_CPP_
namespace tenon::kernels {

// The functions of one target.
struct GemmTable {
  GemmShape shape;
  bool widens_halves;
  void (*pack_panels)(const GemmMatrix& b, size_t depth, size_t columns, size_t panel_stride,
                      float* out);
  void (*run_task)(const GemmArgs& args, size_t task, float* scratch);
  decltype(&StoreGemmSums) store_sums;
};

// Floats that a block of A may need in scratch memory; the rest is B's.
inline size_t GemmBlockFloats(const GemmSizes& s, const GemmGrid& grid) {
  const size_t depth = GemmPart(s.k, grid.depth_blocks, 0).size();
  return RoundUp(std::min(s.m, kGemmBlockRows), 16) * GemmBlockStride(depth);
}

}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

inline constexpr GemmShape kGemmShape = {kGemmLanes, kGemmMr, kGemmNr};

// Elements of a C that is not sure to be in the L2 cache, and the depth of a tile that is long
// enough for its lines to arrive.
inline constexpr size_t kLargeC = 64 << 10;
inline constexpr size_t kWorthPrefetchingC = 32;

// Panels that a block of A is multiplied by in place, without asking whether the run is to end:
// some 2 ms at most.
inline constexpr size_t kInPlacePanels = 64;

// Panels of B, packed or in place. T: float or hwy::float16_t.
template <class T>
struct PanelBlock {
  const T* data;
  size_t panel_stride;
  size_t row_stride;  // used when in_place; a packed panel's rows are as wide as it is
  bool in_place;
  GemmRange panels;
};

// The epilogue at (row, column) for sums over a part of the depth. If the depth has several parts,
// their sums are added up in C: the first one scales C, the last one applies the epilogue.
inline TileOutput OutputAt(const GemmArgs& args, size_t row, size_t column, GemmRange depth) {
  const GemmEpilogue& e = args.epilogue;
  TileOutput out = {.c = args.c + row * args.ldc + column,
                    .ldc = args.ldc,
                    .alpha = args.alpha,
                    .beta = depth.begin == 0 ? args.beta : 1.0f,
                    .ldr = e.ldr};
  if (depth.end == args.sizes.k) {
    out.bias_columns = e.bias_columns ? e.bias_columns + column : nullptr;
    out.bias_rows = e.bias_rows ? e.bias_rows + row : nullptr;
    out.residual = e.residual ? e.residual + row * e.ldr + column : nullptr;
    out.is_relu = e.activation.op == UnaryOp::kRelu;
  }
  return out;
}

// What storing the sums has left to do.
inline void Activate(const Activation& activation, const TileOutput& output, size_t rows,
                     size_t columns) {
  if (activation && !output.is_relu) activation.OverRows(output.c, output.ldc, rows, columns);
}

// One task: the loops around the micro-kernels, from the largest block to the smallest.
class GemmTask {
 public:
  GemmTask(const GemmArgs& args, size_t task, float* scratch)
      : args_(args),
        a_(args.sizes.k ? args.a : GemmMatrix{args.a.data, 0, 0}),
        b_(args.sizes.k ? args.b : GemmMatrix{args.b.data, 0, 0}),
        grid_(MakeGemmGrid(args.sizes, args.is_packed(), kGemmShape, args.threads)),
        rows_(GemmPart(args.sizes.m, grid_.row_tasks, task % grid_.row_tasks)),
        panels_(GemmPart(grid_.panels, grid_.column_tasks, task / grid_.row_tasks)),
        a_scratch_(scratch),
        b_scratch_(scratch + GemmBlockFloats(args.sizes, grid_)),
        activation_(args.epilogue.activation),
        streams_best_alone_(StreamsBestAlone()),
        prefetches_c_(args.sizes.m * args.sizes.n >= kLargeC) {}

  void Run() {
    if (!args_.is_packed()) {
      if (IsFlat(args_.sizes, a_, b_)) return RunFlat();
      if (IsNarrow(args_.sizes, b_)) return RunNarrow();
    }
    for (size_t db = 0; db < grid_.depth_blocks; ++db) {
      const GemmRange depth = GemmPart(args_.sizes.k, grid_.depth_blocks, db);
      if constexpr (kWidensHalves) {
        if (args_.packed_half_b) {
          const auto* halves = reinterpret_cast<const hwy::float16_t*>(args_.packed_half_b);
          RunRows(depth, PackedPanels(halves, panels_), depth.begin);
          continue;
        }
      }
      for (GemmRange panels = {panels_.begin, 0}; panels.begin < panels_.end;
           panels.begin = panels.end) {
        const Source source = SourceOf(panels);
        const PanelBlock<float> b = BlockOfB(panels, depth, source);
        RunRows(depth, b, source == Source::kPacked ? depth.begin : 0);
      }
    }
  }

 private:
  enum class Source { kPacked, kInPlace, kScratch };

  // Where the panels from panels.begin on are read, up to the panels.end that it sets.
  Source SourceOf(GemmRange& panels) const {
    panels.end = panels_.end;
    if (args_.packed_b) return Source::kPacked;
    const size_t whole_panels = std::min(args_.sizes.n / kGemmNr, panels_.end);
    if (panels.begin < whole_panels && IsReadInPlace()) {
      panels.end = std::min(whole_panels, panels.begin + kInPlacePanels);
      return Source::kInPlace;
    }
    panels.end = std::min(panels_.end, panels.begin + UnpackedPanels(kGemmShape));
    return Source::kScratch;
  }

  // Rows of B are read in place: prefetching hides their distance, so a copy would cost more than
  // it saves. But those that evict each other do so before the next tile reads them. And
  // WebAssembly has no prefetching.
  bool IsReadInPlace() const {
    if (b_.column_stride != 1) return false;
    return rows_.size() < 4 * kGemmMr || (!HWY_ARCH_WASM && !PanelSharesSets(b_.row_stride));
  }

  void RunFlat() const {
    HWY_ALIGN float sums[kGemmFlatRows * kFlatColumns];
    const GemmRange depth = {0, args_.sizes.k};
    const size_t end = std::min(panels_.end * kGemmNr, args_.sizes.n);
    for (size_t column = panels_.begin * kGemmNr; column < end; column += kFlatColumns) {
      const size_t columns = std::min(kFlatColumns, end - column);
      const GemmMatrix b = {b_.data + column * b_.column_stride, b_.row_stride, b_.column_stride};
      FlatSums(args_.sizes.m, a_, b, depth.end, columns, sums);
      const TileOutput output = OutputAt(args_, 0, column, depth);
      StoreSums(output, sums, kFlatColumns, args_.sizes.m, columns);
      Activate(activation_, output, args_.sizes.m, columns);
    }
  }

  void RunNarrow() const {
    constexpr size_t kMost = 4;
    HWY_ALIGN float sums[kMost * kGemmLanes];
    const auto [m, columns, depth] = args_.sizes;
    for (size_t row = rows_.begin; row < rows_.end;) {
      const bool is_whole = row + kMost <= rows_.end;
      const size_t count = is_whole ? kMost : 1;
      const GemmMatrix a = {a_.data + row * a_.row_stride, a_.row_stride, a_.column_stride};
      const auto sum = is_whole ? &NarrowSums<kMost> : &NarrowSums<1>;
      sum(a, b_, depth, columns, sums);
      const TileOutput output = OutputAt(args_, row, 0, {0, depth});
      StoreSums(output, sums, kGemmLanes, count, columns);
      Activate(activation_, output, count, columns);
      row += count;
    }
  }

  size_t ColumnsOf(size_t panel) const {
    return std::min(kGemmNr, args_.sizes.n - panel * kGemmNr);
  }

  // In scratch memory if it does not read well. There it stays until another takes its place.
  GemmMatrix BlockOfA(GemmRange rows, GemmRange depth) {
    const GemmMatrix a = {a_.data + rows.begin * a_.row_stride + depth.begin * a_.column_stride,
                          a_.row_stride, a_.column_stride};
    if (depth.size() == 0 || ReadsWell(a, rows.size())) return a;
    if (copied_rows_.end != rows.end || copied_depth_.end != depth.end) {
      copy_ = CopyBlock(a, rows.size(), depth.size(), a_scratch_);
      copied_rows_ = rows;
      copied_depth_ = depth;
    }
    return copy_;
  }

  // Only the last panel can be narrower, and its rows are then narrower too, except for float16.
  template <class T>
  static size_t WidthOf(size_t columns) {
    return sizeof(T) == sizeof(float) ? PanelWidth(columns) : kGemmNr;
  }

  template <class T>
  PanelBlock<T> PackedPanels(const T* packed, GemmRange panels) const {
    const size_t k = args_.sizes.k;
    return {packed + panels.begin * kGemmNr * k, k * kGemmNr, 0, false, panels};
  }

  PanelBlock<float> BlockOfB(GemmRange panels, GemmRange depth, Source source) {
    switch (source) {
      case Source::kPacked:
        return PackedPanels(args_.packed_b, panels);
      case Source::kInPlace:
        return {b_.data + panels.begin * kGemmNr + depth.begin * b_.row_stride, kGemmNr,
                b_.row_stride, true, panels};
      default:
        break;
    }
    const size_t panel_stride = depth.size() * kGemmNr;
    const size_t column = panels.begin * kGemmNr;
    const GemmMatrix corner = {b_.data + depth.begin * b_.row_stride + column * b_.column_stride,
                               b_.row_stride, b_.column_stride};
    PackPanels(corner, depth.size(), std::min(panels.size() * kGemmNr, args_.sizes.n - column),
               panel_stride, b_scratch_);
    return {b_scratch_, panel_stride, 0, false, panels};
  }

  // Multiplies all rows by these panels. b_first_depth: where in them the range `depth` begins.
  template <class T>
  void RunRows(GemmRange depth, const PanelBlock<T>& b, size_t b_first_depth) {
    const size_t row_blocks = DivideUp(rows_.size(), kGemmBlockRows);
    for (size_t rb = 0; rb < row_blocks; ++rb) {
      if (StopSignal::CutsCurrent()) return;
      const GemmRange part = GemmPart(rows_.size(), row_blocks, rb);
      RunBlock({rows_.begin + part.begin, rows_.begin + part.end}, depth, b, b_first_depth);
    }
  }

  template <class T>
  HWY_NOINLINE void RunBlock(GemmRange rows, GemmRange depth, const PanelBlock<T>& b,
                             size_t b_first_depth) {
    const GemmMatrix a = BlockOfA(rows, depth);
    const size_t tiles = DivideUp(rows.size(), kGemmMr);
    // Only a packed panel is dense, so only then can tiles share its prefetching.
    const bool alone = tiles == 1 || b.in_place;
    const bool is_stream = tiles == 1 && !b.in_place;
    // As GemmPart cuts them, but without a division for each tile.
    const size_t low = rows.size() / tiles, taller = rows.size() % tiles;
    constexpr int kShareBits = 8;
    const size_t share = alone ? 0 : (depth.size() << kShareBits) / tiles;
    TileOf<T> tile = {.a_row_stride = a.row_stride,
                      .a_depth_stride = a.column_stride,
                      .depth = depth.size(),
                      .alone = alone,
                      .prefetches = !(is_stream && streams_best_alone_),
                      .prefetches_c = prefetches_c_ && depth.size() >= kWorthPrefetchingC,
                      .output = OutputAt(args_, rows.begin, 0, depth)};
    const TileOutput corner = tile.output;
    const bool is_last = depth.end == args_.sizes.k;
    for (size_t i = 0; i < b.panels.size(); ++i) {
      const size_t from_first = args_.is_backward ? b.panels.size() - 1 - i : i;
      const size_t p = b.panels.begin + from_first;
      const size_t columns = ColumnsOf(p);
      const size_t depth_stride = b.in_place ? b.row_stride : WidthOf<T>(columns);
      tile.b = b.data + from_first * b.panel_stride + b_first_depth * depth_stride;
      tile.b_depth_stride = depth_stride;
      const T* next = args_.is_backward ? tile.b - b.panel_stride : tile.b + b.panel_stride;
      tile.next_stride = alone ? depth_stride : DivideUp(depth_stride, tiles);
      GemmRange part = {0, 0};
      for (size_t t = 0; t < tiles; ++t) {
        part = {part.end, part.end + (t < taller ? low + 1 : low)};
        tile.a = a.data + part.begin * a.row_stride;
        tile.next = next + (t * share >> kShareBits) * depth_stride;
        tile.output.PointFrom(corner, part.begin, p * kGemmNr);
        if constexpr (sizeof(T) < sizeof(float)) {
          // The first tile widens the panel for the others.
          if (t > 0) {
            RunOne(WideTile(tile), part.size(), columns, is_last);
            continue;
          }
          tile.widened = b_scratch_;
        }
        RunOne(tile, part.size(), columns, is_last);
      }
    }
  }

  // The same tile of the panel that the first one has widened. What it prefetches stays.
  Tile WideTile(const HalfTile& tile) const {
    return {.a = tile.a,
            .a_row_stride = tile.a_row_stride,
            .a_depth_stride = tile.a_depth_stride,
            .b = b_scratch_,
            .b_depth_stride = kGemmNr,
            .depth = tile.depth,
            .next = reinterpret_cast<const float*>(tile.next),
            .next_stride = DivideUp(tile.next_stride, 2),
            .alone = false,
            .prefetches = tile.prefetches,
            .prefetches_c = tile.prefetches_c,
            .output = tile.output};
  }

  template <class T>
  void RunOne(const TileOf<T>& tile, size_t rows, size_t columns, bool is_last) const {
    if (columns % kGemmLanes == 0 && WidthOf<T>(columns) == columns) {
      RunTile(tile, rows, columns / kGemmLanes);
    } else {
      RunPartialTile(tile, rows, columns);
    }
    if (is_last) Activate(activation_, tile.output, rows, columns);
  }

  const GemmArgs& args_;
  const GemmMatrix a_, b_;  // with strides 0 when k is: their data may then be null
  const GemmGrid grid_;
  const GemmRange rows_;
  const GemmRange panels_;
  float* const a_scratch_;
  float* const b_scratch_;
  const Activation activation_;
  const bool streams_best_alone_;
  const bool prefetches_c_;
  GemmMatrix copy_;  // the block of A in scratch memory, if these ranges are not empty
  GemmRange copied_rows_ = {};
  GemmRange copied_depth_ = {};
};

void RunGemmTaskOnTarget(const GemmArgs& args, size_t task, float* scratch) {
  GemmTask(args, task, scratch).Run();
}

void StoreSumsOnTarget(const GemmArgs& args, const Activation& activation, size_t row,
                       size_t column, size_t rows, size_t columns, const float* sums, size_t ld) {
  const TileOutput output = OutputAt(args, row, column, {0, args.sizes.k});
  StoreSums(output, sums, ld, rows, columns);
  Activate(activation, output, rows, columns);
}

const GemmTable kGemmTable = {kGemmShape, kWidensHalves, &PackPanels, &RunGemmTaskOnTarget,
                              &StoreSumsOnTarget};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {
namespace {

// Panels of B that one packing task writes: 512 bytes of a row at AVX-512's width. More streams at
// once contend for the same sets of the cache and are slower.
constexpr size_t kPanelsPerPackTask = 4;

const GemmTable& Table() { return TENON_SELECT_TABLE(GemmTable, kGemmTable); }

}  // namespace

size_t GemmPanelColumns() { return Table().shape.nr; }

size_t GemmTileRows() { return Table().shape.mr; }

bool IsHalfGemmFast() { return Table().widens_halves; }

size_t PackedGemmBSize(size_t n, size_t k) {
  return RoundUp(k * RoundUp(n, Table().shape.lanes) * sizeof(float), 64);
}

size_t PackGemmBTaskCount(size_t n, size_t k) {
  return k == 0 ? 0 : DivideUp(n, kPanelsPerPackTask * Table().shape.nr);
}

void RunPackGemmBTask(const GemmMatrix& b, size_t n, size_t k, size_t task, float* packed) {
  const GemmTable& table = Table();
  const size_t nr = table.shape.nr;
  const size_t first = task * kPanelsPerPackTask * nr;
  const size_t columns = std::min(n - first, kPanelsPerPackTask * nr);
  const GemmMatrix corner = {b.data + first * b.column_stride, b.row_stride, b.column_stride};
  table.pack_panels(corner, k, columns, k * nr, packed + first * k);
}

void PackGemmB(const GemmMatrix& b, size_t n, size_t k, float* packed) {
  const size_t tasks = PackGemmBTaskCount(n, k);
  for (size_t task = 0; task < tasks; ++task) RunPackGemmBTask(b, n, k, task, packed);
}

size_t PackedHalfGemmBSize(size_t n, size_t k) {
  return RoundUp(k * RoundUp(n, Table().shape.nr) * sizeof(uint16_t), 64);
}

void RunPackHalfGemmBTask(const HalfMatrix& b, size_t n, size_t k, size_t task, uint16_t* packed) {
  constexpr size_t kRows = 32;  // at a time: lines of columns that are dense in depth stay cached
  const size_t nr = Table().shape.nr;
  const size_t last = std::min(n, (task + 1) * kPanelsPerPackTask * nr);
  for (size_t first = task * kPanelsPerPackTask * nr; first < last; first += nr) {
    const size_t columns = std::min(nr, last - first);
    for (size_t begin = 0; begin < k; begin += kRows) {
      const size_t end = std::min(k, begin + kRows);
      uint16_t* const panel = packed + first * k;
      const uint16_t* const corner = b.data + first * b.column_stride;
      if (columns < nr) std::fill(panel + begin * nr, panel + end * nr, uint16_t{0});
      if (b.column_stride == 1) {
        for (size_t i = begin; i < end; ++i) {
          const void* const row = corner + i * b.row_stride;
          std::memcpy(panel + i * nr, row, columns * sizeof(uint16_t));
        }
        continue;
      }
      for (size_t j = 0; j < columns; ++j) {
        const uint16_t* const column = corner + j * b.column_stride;
        for (size_t i = begin; i < end; ++i) {
          panel[i * nr + j] = LoadUnaligned(column + i * b.row_stride);
        }
      }
    }
  }
}

size_t GemmTaskCount(const GemmSizes& sizes, bool packed_b, size_t threads) {
  return MakeGemmGrid(sizes, packed_b, Table().shape, threads).tasks();
}

size_t GemmScratchSize(const GemmSizes& sizes, bool packed_b, bool is_half) {
  const GemmShape& shape = Table().shape;
  const GemmGrid grid = MakeGemmGrid(sizes, packed_b, shape, 1);  // with the most panels for a task
  if (grid.tasks() == 0) return 0;
  size_t floats = GemmBlockFloats(sizes, grid);
  if (!packed_b || is_half) {
    const size_t depth = GemmPart(sizes.k, grid.depth_blocks, 0).size();
    floats += (is_half ? 1 : std::min(UnpackedPanels(shape), grid.panels)) * shape.nr * depth;
  }
  return RoundUp(floats * sizeof(float), 64);
}

void RunGemmTask(const GemmArgs& args, size_t task, float* scratch) {
  Table().run_task(args, task, scratch);
}

void StoreGemmSums(const GemmArgs& args, const Activation& activation, size_t row, size_t column,
                   size_t rows, size_t columns, const float* sums, size_t ld) {
  Table().store_sums(args, activation, row, column, rows, columns, sums, ld);
}

void Gemm(const GemmArgs& args, float* scratch) {
  GemmArgs own = args;
  own.threads = 1;
  const size_t tasks = GemmTaskCount(own.sizes, own.is_packed(), own.threads);
  for (size_t task = 0; task < tasks; ++task) RunGemmTask(own, task, scratch);
}

}  // namespace tenon::kernels
#endif
