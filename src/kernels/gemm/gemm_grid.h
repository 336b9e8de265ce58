// Divides a matrix product into tasks, and a task into blocks. By shape alone.
#pragma once

#include <algorithm>
#include <cstddef>

#include "kernels/gemm/gemm_args.h"

namespace tenon::kernels {

inline constexpr size_t DivideUp(size_t x, size_t y) { return (x + y - 1) / y; }
inline constexpr size_t RoundUp(size_t x, size_t y) { return DivideUp(x, y) * y; }

struct GemmRange {
  size_t begin, end;
  size_t size() const { return end - begin; }
};

// The part-th of `parts` nearly equal pieces of [0, size).
inline GemmRange GemmPart(size_t size, size_t parts, size_t part) {
  if (parts == 1) return {0, size};  // before divisions, for small products
  const size_t small = size / parts, larger = size % parts;
  const size_t begin = part * small + std::min(part, larger);
  return {begin, begin + small + (part < larger ? 1 : 0)};
}

// A micro-kernel's shape for one target: it computes `mr` rows of a panel of `nr` columns. The last
// panel of B is as narrow as its columns allow in whole vectors of `lanes`.
struct GemmShape {
  size_t lanes, mr, nr;
};

// Rows in one block of A: 8 micro-tiles of 14 rows. With kGemmBlockDepth columns, the block and a
// panel of B fit in half of an L2 cache of 1 MiB.
inline constexpr size_t kGemmBlockRows = 112;
// The depth of a block. The sums of a deeper product go through memory once per block.
inline constexpr size_t kGemmBlockDepth = 512;
// A single micro-tile reads nothing of B twice, so its block is deep: B is read in long streams.
inline constexpr size_t kGemmBlockDepthOneTile = 2048;
// Panels of an unpacked B that are packed together: 256 columns. For each such group a transposed A
// is copied again.
inline size_t UnpackedPanels(const GemmShape& shape) { return 256 / shape.nr; }

struct GemmGrid {
  size_t row_tasks, column_tasks;  // task = column_task * row_tasks + row_task
  size_t panels;
  size_t depth_blocks;

  size_t tasks() const { return row_tasks * column_tasks; }
};

// Products of at most this many rows read an unpacked B once, in place.
inline constexpr size_t kGemmFlatRows = 4;

// The number of tasks by a product's cost alone, before its shape limits it.
inline size_t WantedGemmTasks(const GemmSizes& s) {
  // In multiply-adds; reading an element of B from memory costs as much as 8 of them.
  constexpr double kTaskCost = 0.75e6;
  const double tasks = (static_cast<double>(s.m) + 8) * static_cast<double>(s.n) *
                       static_cast<double>(s.k) / kTaskCost;
  if (tasks < 8) return std::max<size_t>(1, static_cast<size_t>(tasks));
  // Beyond 8 tasks, tasks also grow: each one reads its rows of A and its columns of B again.
  return static_cast<size_t>(std::min(8 + (tasks - 8) / 8, 32.0));
}

inline GemmGrid MakeGemmGrid(const GemmSizes& s, bool packed_b, const GemmShape& shape,
                             size_t threads) {
  if (s.m == 0 || s.n == 0) return {0, 0, 0, 0};
  // This many tasks give up to 16 threads work; more are made only if they repeat no work.
  const size_t enough = threads == 1 ? 1 : std::min<size_t>(16, 4 * threads);
  const size_t panels = DivideUp(s.n, shape.nr);
  const size_t row_blocks = DivideUp(s.m, kGemmBlockRows);
  const size_t wanted = WantedGemmTasks(s);
  GemmGrid grid;
  grid.panels = panels;
  if (wanted == 1) {
    grid.row_tasks = grid.column_tasks = 1;
  } else if (packed_b) {
    // Cutting rows costs another read of B, which its prefetching hides while a task has a few
    // tiles for each panel. Cutting columns costs another read and perhaps a copy of A, which 6
    // panels repay, and 16 better, where the rows alone give work to many threads.
    const size_t task_panels = row_blocks >= 8 ? 16 : 6;
    const size_t wide_tasks = std::max<size_t>(1, panels / task_panels);
    const size_t most_row_tasks = threads == 1 ? row_blocks : DivideUp(s.m, 32);
    grid.row_tasks = std::clamp(DivideUp(wanted, wide_tasks), std::min(row_blocks, wanted),
                                std::min(most_row_tasks, wanted));
    grid.column_tasks = std::min({panels, DivideUp(wanted, grid.row_tasks),
                                  std::max(wide_tasks, DivideUp(enough, grid.row_tasks))});
  } else if (s.m <= kGemmFlatRows) {
    // A flat product reads long runs of B.
    grid.row_tasks = 1;
    grid.column_tasks = std::min({panels, wanted, std::max<size_t>(8, panels / 8)});
  } else {
    // Each task may copy its part of A and its part of B: the division with the smallest copies.
    const size_t most = std::min(wanted, enough);
    const auto copied = [&s](size_t rows, size_t columns) { return rows * s.n + columns * s.m; };
    grid.row_tasks = std::min(row_blocks, most);
    grid.column_tasks = std::min(panels, DivideUp(most, grid.row_tasks));
    for (size_t rows = grid.row_tasks - 1; rows > 0; --rows) {
      const size_t columns = DivideUp(most, rows);
      if (columns > panels) break;
      if (copied(rows, columns) >= copied(grid.row_tasks, grid.column_tasks)) continue;
      grid.row_tasks = rows;
      grid.column_tasks = columns;
    }
  }
  const size_t depth = s.m <= shape.mr ? kGemmBlockDepthOneTile : kGemmBlockDepth;
  grid.depth_blocks = std::max<size_t>(1, DivideUp(s.k, depth));
  return grid;
}

// The row stride of a block of A that is copied to scratch: an odd number of cache lines, so that
// the rows of a tile lie in different sets of the cache.
inline size_t GemmBlockStride(size_t elements) { return RoundUp(elements, 32) + 16; }

}  // namespace tenon::kernels
