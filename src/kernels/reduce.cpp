#include "kernels/reduce.h"

#include <algorithm>

#include "kernels/reduce_kernels.h"

namespace tenon::kernels {
namespace {

constexpr size_t kTaskElements = 32768;

// The offsets of a nest of loops, the last axis fastest.
class Cursor {
 public:
  Cursor(std::span<const ReducePlan::Axis> axes, size_t step) : axes_(axes) {
    for (size_t i = axes.size(); i-- > 0;) {
      index_[i] = step % axes[i].size;
      step /= axes[i].size;
      offset_ += index_[i] * axes[i].stride;
    }
  }
  size_t offset() const { return offset_; }
  // False after the last step.
  bool Next() {
    for (size_t i = axes_.size(); i-- > 0;) {
      offset_ += axes_[i].stride;
      if (++index_[i] < axes_[i].size) return true;
      index_[i] = 0;
      offset_ -= axes_[i].size * axes_[i].stride;
    }
    return false;
  }

 private:
  std::span<const ReducePlan::Axis> axes_;
  std::array<size_t, kMaxReduceRank> index_{};
  size_t offset_ = 0;
};

// One unit: the outputs [first, first + n) of a row, whose elements start at x.
struct Unit {
  const uint8_t* x;
  size_t n;
};

void Accumulate(const ReducePlan& plan, const ReduceKernels& kernels, size_t size, const Unit& unit,
                const void* shift, void* accumulators) {
  kernels.initialize(accumulators, unit.n);
  if (plan.count == 0) return;
  Cursor cursor(std::span(plan.reduced).first(plan.reduced_rank), 0);
  do {
    const uint8_t* x = unit.x + cursor.offset() * size;
    if (plan.inner_reduced) {
      kernels.add_row(x, plan.inner, shift, accumulators);
    } else {
      kernels.add_columns(x, plan.rows.stride, plan.rows.size, unit.n, shift, accumulators);
    }
  } while (cursor.Next());
}

}  // namespace

Result<ReducePlan> MakeReducePlan(std::span<const size_t> shape, std::span<const bool> reduced) {
  if (shape.size() > kMaxReduceRank || reduced.size() != shape.size()) {
    return InvalidArgument("expected at most {} axes and a flag for each, got {} and {}",
                           kMaxReduceRank, shape.size(), reduced.size());
  }
  ReducePlan plan;
  plan.outputs = plan.count = 1;
  // Merged axes, the innermost first.
  std::array<ReducePlan::Axis, kMaxReduceRank> axes;
  std::array<bool, kMaxReduceRank> is_reduced;
  size_t rank = 0;
  size_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    (reduced[i] ? plan.count : plan.outputs) *= shape[i];
    if (shape[i] == 1) continue;
    if (rank > 0 && is_reduced[rank - 1] == reduced[i]) {
      axes[rank - 1].size *= shape[i];
    } else {
      is_reduced[rank] = reduced[i];
      axes[rank++] = {shape[i], stride};
    }
    stride *= shape[i];
  }
  size_t outer = 0;
  if (rank > 0) {
    plan.inner = axes[0].size;
    plan.inner_reduced = is_reduced[0];
    outer = 1;
    if (!plan.inner_reduced && rank > 1) plan.rows = axes[outer++];
  }
  for (size_t i = rank; i-- > outer;) {
    if (is_reduced[i]) {
      plan.reduced[plan.reduced_rank++] = axes[i];
    } else {
      plan.kept[plan.kept_rank++] = axes[i];
    }
  }
  if (plan.outputs == 0) return plan;
  if (!plan.inner_reduced) {
    plan.block = std::min(plan.inner, kReduceBlock);
    plan.blocks = (plan.inner + plan.block - 1) / plan.block;
    plan.units = plan.outputs / plan.inner * plan.blocks;
  } else {
    plan.units = plan.outputs;
  }
  plan.grain = std::max<size_t>(1, kTaskElements / std::max<size_t>(1, plan.block * plan.count));
  return plan;
}

void RunReduce(const ReducePlan& plan, ReduceOp op, ElementType type, const void* x, void* y,
               size_t begin, size_t end) {
  const ReduceKernels kernels = FindReduceKernels(op, type);
  const ReduceKernels max = FindReduceKernels(ReduceOp::kMax, type);
  const size_t size = SizeOf(type);
  alignas(64) uint8_t accumulators[kReduceBlock * kMaxAccumulatorBytes];
  alignas(64) uint8_t shift[kReduceBlock * kMaxAccumulatorBytes];
  const bool shifted = op == ReduceOp::kLogSumExp;
  size_t block = begin % plan.blocks;
  Cursor kept(std::span(plan.kept).first(plan.kept_rank), begin / plan.blocks);
  for (size_t unit = begin; unit < end; ++unit) {
    const size_t first = block * plan.block;
    const size_t row = plan.inner_reduced ? 1 : plan.inner;
    const Unit work = {static_cast<const uint8_t*>(x) + (kept.offset() + first) * size,
                       std::min(plan.block, row - first)};
    if (shifted) {
      Accumulate(plan, max, size, work, nullptr, accumulators);
      max.finish(accumulators, work.n, plan.count, nullptr, shift);
    }
    Accumulate(plan, kernels, size, work, shifted ? shift : nullptr, accumulators);
    kernels.finish(accumulators, work.n, plan.count, shifted ? shift : nullptr,
                   static_cast<uint8_t*>(y) + (unit / plan.blocks * row + first) * size);
    if (++block == plan.blocks) {
      block = 0;
      kept.Next();
    }
  }
}

}  // namespace tenon::kernels
