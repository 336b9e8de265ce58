// Reductions over any set of axes: the Reduce* operators of ONNX.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/element_type.h"
#include "kernels/reduce_op.h"

namespace tenon::kernels {

inline constexpr size_t kMaxReduceRank = 32;

// Loops over a dense input, with neighbouring axes merged that are all kept or all reduced. If the
// innermost is reduced, rows of it are summed, short ones many at a time; if it is kept, rows of it
// are added up vertically.
struct ReducePlan {
  struct Axis {
    size_t size;
    size_t stride;  // elements
  };
  bool inner_reduced = false;
  bool has_short_rows = false;  // the innermost axis alone is reduced, and it is short
  size_t inner = 1;
  Axis rows{1, 0};  // where the innermost axis is kept: the reduced axis next to it
  size_t kept_rank = 0;
  std::array<Axis, kMaxReduceRank> kept{};  // other kept axes, the last fastest
  size_t reduced_rank = 0;
  std::array<Axis, kMaxReduceRank> reduced{};  // other reduced axes
  size_t outputs = 0;  // elements of the result, in row-major order of the kept axes
  size_t count = 0;    // elements that each output is made of
  // Units of work, which are independent: outputs, or blocks of them in a row.
  size_t block = 1;  // outputs of a unit; the last one in a row may have fewer
  size_t blocks = 1;
  size_t units = 0;
  size_t grain = 1;  // units that make a task of reasonable size
};

// reduced[i] says whether axis i is.
// errors   kInvalidArgument  rank above kMaxReduceRank
Result<ReducePlan> MakeReducePlan(std::span<const size_t> shape, std::span<const bool> reduced);

// Runs the units [begin, end) of plan.units. Float sums are taken in blocks whose results are added
// in double. May be called from several threads at once.
void RunReduce(const ReducePlan& plan, ReduceOp op, ElementType type, const void* x, void* y,
               size_t begin, size_t end);

}  // namespace tenon::kernels
