// Multidirectional broadcasting (ONNX "Broadcasting", NumPy's rules) of two or three inputs. A plan
// divides the output into contiguous runs and says which elements of the inputs belong to each; it
// does not depend on the operator.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/status.h"
#include "kernels/elementwise/elementwise.h"

namespace tenon::kernels {

inline constexpr size_t kMaxBroadcastInputs = 3;
inline constexpr size_t kMaxBroadcastRank = 32;

// The output, in row-major order, is `outer` runs of `inner` elements. Along a run each input
// either advances (stride 1) or repeats one element (stride 0). Neighbouring axes along which the
// inputs do the same are merged.
struct BroadcastPlan {
  size_t input_count = 0;
  size_t inner = 1;
  std::array<size_t, kMaxBroadcastInputs> inner_stride{};
  size_t outer = 1;  // 0 if the output is empty
  // The outer axes, innermost first, with each input's stride in elements.
  size_t outer_rank = 0;
  std::array<size_t, kMaxBroadcastRank> outer_dim{};
  std::array<std::array<size_t, kMaxBroadcastInputs>, kMaxBroadcastRank> outer_stride{};

  size_t output_size() const { return inner * outer; }
};

// Shapes are row-major and dense, at most kMaxBroadcastInputs of them.
// errors   kInvalidArgument  shapes that do not broadcast, a negative dimension, a rank above
//          kMaxBroadcastRank, or more elements than memory has addresses; the text names the input
Result<BroadcastPlan> MakeBroadcastPlan(std::span<const std::span<const int64_t>> shapes);

// How a plan is divided into tasks: whole runs, or equal pieces of long runs. Depends on the shape
// and the grain alone.
struct BroadcastTasks {
  size_t count = 0;
  size_t runs_per_task = 1;
  size_t pieces_per_run = 1;
  size_t piece = 0;  // elements of a run that a task handles
};
BroadcastTasks SplitBroadcast(const BroadcastPlan& plan, size_t grain);

// A position at the start of a run, for walking over runs in order.
class BroadcastCursor {
 public:
  BroadcastCursor(const BroadcastPlan& plan, size_t run);
  // Element offset of the run's start in an input.
  size_t offset(size_t input) const { return offsets_[input]; }
  void Next() {
    for (size_t axis = 0; axis < plan_.outer_rank; ++axis) {
      const auto& stride = plan_.outer_stride[axis];
      for (size_t i = 0; i < kMaxBroadcastInputs; ++i) offsets_[i] += stride[i];
      if (++index_[axis] < plan_.outer_dim[axis]) return;
      index_[axis] = 0;
      for (size_t i = 0; i < kMaxBroadcastInputs; ++i) {
        offsets_[i] -= stride[i] * plan_.outer_dim[axis];
      }
    }
  }

 private:
  const BroadcastPlan& plan_;
  std::array<size_t, kMaxBroadcastInputs> offsets_{};
  std::array<size_t, kMaxBroadcastRank> index_{};
};

// Calls f(offsets of the inputs in elements, offset in the output, length) for the parts of runs
// that belong to `task`.
template <class F>
void ForEachRunOfTask(const BroadcastPlan& plan, const BroadcastTasks& tasks, size_t task, F&& f) {
  const size_t first_run = task / tasks.pieces_per_run * tasks.runs_per_task;
  const size_t begin = task % tasks.pieces_per_run * tasks.piece;
  const size_t n = begin + tasks.piece < plan.inner ? tasks.piece : plan.inner - begin;
  const size_t left = plan.outer - first_run;
  const size_t runs = left < tasks.runs_per_task ? left : tasks.runs_per_task;
  BroadcastCursor cursor(plan, first_run);
  for (size_t run = first_run; run < first_run + runs; ++run, cursor.Next()) {
    std::array<size_t, kMaxBroadcastInputs> offsets;
    for (size_t i = 0; i < kMaxBroadcastInputs; ++i) {
      offsets[i] = cursor.offset(i) + begin * plan.inner_stride[i];
    }
    f(offsets, run * plan.inner + begin, n);
  }
}

// One task of y = op(a, b). Element sizes are in bytes. y may be an input of the output's shape.
struct BroadcastBinary {
  BinaryFunctions functions;
  size_t input_size;
  size_t output_size;
};
void RunBroadcastBinary(const BroadcastPlan& plan, const BroadcastTasks& tasks, size_t task,
                        const BroadcastBinary& op, const void* a, const void* b, void* y);

// One task of y = condition ? a : b on elements of `size` bytes; the plan's inputs are in that
// order.
void RunBroadcastWhere(const BroadcastPlan& plan, const BroadcastTasks& tasks, size_t task,
                       size_t size, const uint8_t* condition, const void* a, const void* b,
                       void* y);

}  // namespace tenon::kernels
