#include "kernels/elementwise/broadcast.h"

#include <algorithm>

namespace tenon::kernels {
namespace {

// The size of `shape` along the axis-th axis from the back; missing axes are 1.
int64_t DimFromBack(std::span<const int64_t> shape, size_t axis) {
  return axis < shape.size() ? shape[shape.size() - 1 - axis] : 1;
}

Result<int64_t> BroadcastDim(std::span<const std::span<const int64_t>> shapes, size_t axis) {
  int64_t dim = 1;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const int64_t own = DimFromBack(shapes[i], axis);
    if (own < 0) return InvalidArgument("input {}: negative dimension {}", i, own);
    if (own == 1 || own == dim) continue;
    if (dim != 1) {
      return InvalidArgument(
          "input {}: dimension {}, axis {} from the back, does not broadcast to {}", i, own,
          axis + 1, dim);
    }
    dim = own;
  }
  return dim;
}

// Bit i is set if input i has size 1 along an axis where the output is longer.
uint32_t RepeatedInputs(std::span<const std::span<const int64_t>> shapes, size_t axis) {
  uint32_t repeated = 0;
  for (size_t i = 0; i < shapes.size(); ++i) {
    if (DimFromBack(shapes[i], axis) == 1) repeated |= 1u << i;
  }
  return repeated;
}

// Runs shorter than this are gathered into tiles, since calling an operator for each of them would
// cost more than its work. So are somewhat longer ones if the same tile serves many of them, as
// with the factors of channels in a blocked layout.
constexpr size_t kShortRun = 16;
constexpr size_t kShortRepeatedRun = 65;
constexpr size_t kTile = 512;

// Whether an input has the output's shape.
bool IsFull(const BroadcastPlan& plan, size_t input) {
  size_t stride = plan.inner;
  bool full = plan.inner_stride[input] == 1;
  for (size_t axis = 0; axis < plan.outer_rank; ++axis) {
    full = full && plan.outer_stride[axis][input] == stride;
    stride *= plan.outer_dim[axis];
  }
  return full;
}

bool HasShortRuns(const BroadcastPlan& plan) {
  if (plan.outer_rank == 0) return false;
  if (plan.inner < kShortRun) return true;
  const auto repeats = [&](size_t input) {
    return IsFull(plan, input) || plan.outer_stride[0][input] == 0;
  };
  const size_t runs_of_tile = kTile / plan.inner;
  return plan.inner < kShortRepeatedRun && plan.outer_dim[0] >= runs_of_tile && repeats(0) &&
         repeats(1);
}

// Writes an input's elements for the runs that follow the cursor.
template <class T>
void GatherRuns(const BroadcastPlan& plan, BroadcastCursor cursor, size_t input, size_t runs,
                const uint8_t* x, uint8_t* tile) {
  const T* from = reinterpret_cast<const T*>(x);
  T* to = reinterpret_cast<T*>(tile);
  const size_t stride = plan.inner_stride[input];
  for (size_t run = 0; run < runs; ++run, cursor.Next()) {
    const T* start = from + cursor.offset(input);
    for (size_t i = 0; i < plan.inner; ++i) *to++ = start[i * stride];
  }
}

// One of two inputs, presented as a dense array for a tile of runs.
class TileOperand {
 public:
  TileOperand(const BroadcastPlan& plan, size_t input, size_t size, const void* x)
      : plan_(plan),
        input_(input),
        size_(size),
        full_(IsFull(plan, input)),
        x_(static_cast<const uint8_t*>(x)) {}

  const void* Load(size_t run, size_t runs) {
    if (full_) return x_ + run * plan_.inner * size_;
    const BroadcastCursor cursor(plan_, run);
    // Along the innermost outer axis an input may not advance: the last tile is then used again.
    const bool stays =
        plan_.outer_stride[0][input_] == 0 && run % plan_.outer_dim[0] + runs <= plan_.outer_dim[0];
    if (stays && held_runs_ >= runs && held_offset_ == cursor.offset(input_)) return tile_;
    held_runs_ = stays ? runs : 0;
    held_offset_ = cursor.offset(input_);
    switch (size_) {
      case 1:
        GatherRuns<uint8_t>(plan_, cursor, input_, runs, x_, tile_);
        break;
      case 2:
        GatherRuns<uint16_t>(plan_, cursor, input_, runs, x_, tile_);
        break;
      case 4:
        GatherRuns<uint32_t>(plan_, cursor, input_, runs, x_, tile_);
        break;
      default:
        GatherRuns<uint64_t>(plan_, cursor, input_, runs, x_, tile_);
        break;
    }
    return tile_;
  }

 private:
  const BroadcastPlan& plan_;
  size_t input_;
  size_t size_;
  bool full_;
  const uint8_t* x_;
  size_t held_runs_ = 0;
  size_t held_offset_ = 0;
  alignas(64) uint8_t tile_[kTile * sizeof(uint64_t)];
};

void RunShortRuns(const BroadcastPlan& plan, const BroadcastTasks& tasks, size_t task,
                  const BroadcastBinary& op, const void* a, const void* b, void* y) {
  const size_t first = task * tasks.runs_per_task;
  const size_t end = std::min(plan.outer, first + tasks.runs_per_task);
  TileOperand tile_a(plan, 0, op.input_size, a);
  TileOperand tile_b(plan, 1, op.input_size, b);
  for (size_t run = first; run < end;) {
    const size_t runs = std::min(kTile / plan.inner, end - run);
    op.functions.vector_vector(tile_a.Load(run, runs), tile_b.Load(run, runs),
                               static_cast<uint8_t*>(y) + run * plan.inner * op.output_size,
                               runs * plan.inner);
    run += runs;
  }
}

}  // namespace

Result<BroadcastPlan> MakeBroadcastPlan(std::span<const std::span<const int64_t>> shapes) {
  BroadcastPlan plan;
  plan.input_count = shapes.size();
  size_t rank = 0;
  for (const auto& shape : shapes) rank = std::max(rank, shape.size());
  if (shapes.size() > kMaxBroadcastInputs || rank > kMaxBroadcastRank) {
    return InvalidArgument("expected at most {} inputs of rank at most {}, got {} of rank {}",
                           kMaxBroadcastInputs, kMaxBroadcastRank, shapes.size(), rank);
  }
  std::array<size_t, kMaxBroadcastInputs> stride;
  stride.fill(1);
  bool has_inner = false;
  uint32_t previous = 0;
  size_t total = 1;
  for (size_t axis = 0; axis < rank; ++axis) {
    TENON_ASSIGN_OR_RETURN(const int64_t signed_dim, BroadcastDim(shapes, axis));
    const size_t dim = static_cast<size_t>(signed_dim);
    if (dim == 1) continue;
    if (__builtin_mul_overflow(total, signed_dim, &total)) {
      return InvalidArgument("the result of broadcasting has too many elements");
    }
    const uint32_t repeated = RepeatedInputs(shapes, axis);
    const bool merge = has_inner && repeated == previous;
    if (merge && plan.outer_rank == 0) {
      plan.inner *= dim;
    } else if (merge) {
      plan.outer_dim[plan.outer_rank - 1] *= dim;
    } else if (!has_inner) {
      plan.inner = dim;
    } else {
      plan.outer_dim[plan.outer_rank++] = dim;
    }
    for (size_t i = 0; i < shapes.size(); ++i) {
      const bool advances = (repeated >> i & 1) == 0;
      if (!merge && !has_inner) plan.inner_stride[i] = advances;
      if (!merge && has_inner) plan.outer_stride[plan.outer_rank - 1][i] = advances ? stride[i] : 0;
      if (advances) stride[i] *= dim;
    }
    has_inner = true;
    previous = repeated;
  }
  // Each run is one element: vectors of length 1.
  if (!has_inner) plan.inner_stride.fill(1);
  for (size_t axis = 0; axis < plan.outer_rank; ++axis) plan.outer *= plan.outer_dim[axis];
  if (total == 0) plan.outer = 0;
  return plan;
}

BroadcastTasks SplitBroadcast(const BroadcastPlan& plan, size_t grain) {
  BroadcastTasks tasks;
  tasks.piece = plan.inner;
  if (plan.output_size() == 0) return tasks;
  if (plan.inner >= 2 * grain) {
    // Pieces of a multiple of 64 elements share no cache line.
    tasks.piece = (grain + 63) / 64 * 64;
    tasks.pieces_per_run = (plan.inner + tasks.piece - 1) / tasks.piece;
    tasks.count = plan.outer * tasks.pieces_per_run;
  } else {
    tasks.runs_per_task = std::max<size_t>(1, grain / plan.inner);
    tasks.count = (plan.outer + tasks.runs_per_task - 1) / tasks.runs_per_task;
  }
  return tasks;
}

BroadcastCursor::BroadcastCursor(const BroadcastPlan& plan, size_t run) : plan_(plan) {
  for (size_t axis = 0; axis < plan.outer_rank; ++axis) {
    index_[axis] = run % plan.outer_dim[axis];
    run /= plan.outer_dim[axis];
    for (size_t i = 0; i < plan.input_count; ++i) {
      offsets_[i] += index_[axis] * plan.outer_stride[axis][i];
    }
  }
}

void RunBroadcastBinary(const BroadcastPlan& plan, const BroadcastTasks& tasks, size_t task,
                        const BroadcastBinary& op, const void* a, const void* b, void* y) {
  if (tasks.runs_per_task > 1 && HasShortRuns(plan)) {
    return RunShortRuns(plan, tasks, task, op, a, b, y);
  }
  const BinaryFunction function = plan.inner_stride[0] == 0   ? op.functions.scalar_vector
                                  : plan.inner_stride[1] == 0 ? op.functions.vector_scalar
                                                              : op.functions.vector_vector;
  const auto* a_bytes = static_cast<const uint8_t*>(a);
  const auto* b_bytes = static_cast<const uint8_t*>(b);
  auto* y_bytes = static_cast<uint8_t*>(y);
  ForEachRunOfTask(plan, tasks, task, [&](const auto& offsets, size_t output, size_t n) {
    function(a_bytes + offsets[0] * op.input_size, b_bytes + offsets[1] * op.input_size,
             y_bytes + output * op.output_size, n);
  });
}

void RunBroadcastWhere(const BroadcastPlan& plan, const BroadcastTasks& tasks, size_t task,
                       size_t size, const uint8_t* condition, const void* a, const void* b,
                       void* y) {
  const auto* a_bytes = static_cast<const uint8_t*>(a);
  const auto* b_bytes = static_cast<const uint8_t*>(b);
  auto* y_bytes = static_cast<uint8_t*>(y);
  const WhereStrides strides = {plan.inner_stride[0], plan.inner_stride[1], plan.inner_stride[2]};
  ForEachRunOfTask(plan, tasks, task, [&](const auto& offsets, size_t output, size_t n) {
    Where(condition + offsets[0], a_bytes + offsets[1] * size, b_bytes + offsets[2] * size,
          y_bytes + output * size, n, size, strides);
  });
}

}  // namespace tenon::kernels
