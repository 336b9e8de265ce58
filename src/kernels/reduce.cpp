#include "kernels/reduce.h"

#include <algorithm>
#include <cstring>

#include "kernels/reduce_kernels.h"

namespace tenon::kernels {
namespace {

constexpr size_t kTaskElements = 32768;

// Rows up to this length are not worth separate calls: as many as fit in L1 are transposed and
// added up vertically.
constexpr size_t kShortRow = 16;
constexpr size_t kShortRowBlock = 64;

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

// Elements of kSize bytes.
template <size_t kSize>
void Transpose(const uint8_t* rows, size_t count, size_t length, uint8_t* columns) {
  for (size_t i = 0; i < length; ++i) {
    for (size_t row = 0; row < count; ++row) {
      std::memcpy(columns + (i * count + row) * kSize, rows + (row * length + i) * kSize, kSize);
    }
  }
}

void TransposeRows(size_t size, const uint8_t* rows, size_t count, size_t length,
                   uint8_t* columns) {
  if (size == 1) return Transpose<1>(rows, count, length, columns);
  if (size == 2) return Transpose<2>(rows, count, length, columns);
  if (size == 4) return Transpose<4>(rows, count, length, columns);
  Transpose<8>(rows, count, length, columns);
}

void Accumulate(const ReducePlan& plan, const ReduceKernels& kernels, size_t size, const Unit& unit,
                const void* shift, void* accumulators) {
  kernels.initialize(accumulators, unit.n);
  if (plan.count == 0) return;
  if (plan.has_short_rows) {
    alignas(64) uint8_t columns[kShortRow * kShortRowBlock * sizeof(uint64_t)];
    TransposeRows(size, unit.x, unit.n, plan.inner, columns);
    kernels.add_columns(columns, unit.n, plan.inner, unit.n, shift, accumulators);
    return;
  }
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
  } else if (plan.reduced_rank == 0 && plan.inner <= kShortRow && plan.outputs > 1) {
    plan.has_short_rows = true;
    plan.kept_rank = 0;
    plan.block = std::min(plan.outputs, kShortRowBlock);
    plan.blocks = plan.units = (plan.outputs + plan.block - 1) / plan.block;
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
  // The outputs that blocks divide.
  const size_t row = plan.has_short_rows ? plan.outputs : plan.inner_reduced ? 1 : plan.inner;
  Cursor kept(std::span(plan.kept).first(plan.kept_rank), begin / plan.blocks);
  for (size_t unit = begin; unit < end; ++unit) {
    const size_t first = block * plan.block;
    const size_t offset = plan.has_short_rows ? first * plan.inner : kept.offset() + first;
    const Unit work = {static_cast<const uint8_t*>(x) + offset * size,
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
