#include "ops/linear/scalar_matmul.h"

#include <algorithm>

#include "base/arithmetic.h"

namespace tenon {
namespace {

// T is double, or an unsigned type for the sums of integers of its size.
template <class T>
Status MultiplyStacks(KernelContext& context, OperandForm a_form, OperandForm b_form) {
  const Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const auto* a_elements = static_cast<const T*>(context.Input(0).raw());
  const auto* b_elements = static_cast<const T*>(context.Input(1).raw());
  auto* results = static_cast<T*>(context.Output(0).raw());
  const MatrixStack a = StackOf(context.Input(0).shape(), a_form, Side::kLeft);
  const MatrixStack b = StackOf(context.Input(1).shape(), b_form, Side::kRight);
  const BatchPairs pairs(a.batch, b.batch);
  constexpr size_t kRowsPerTask = 16;
  const size_t row_tasks = CeilDiv(a.rows, kRowsPerTask);
  return context.ForEachTask(pairs.count() * row_tasks, 0, [&](size_t task, std::byte*) {
    const size_t matrix = task / row_tasks;
    const size_t row = task % row_tasks * kRowsPerTask;
    const BatchPairs::Pair pair = pairs.At(matrix);
    const T* rows = a_elements + pair.a * a.matrix_stride + row * a.row_stride;
    ScalarProductRows<T>({rows, a.row_stride, a.column_stride},
                         {b_elements + pair.b * b.matrix_stride, b.row_stride, b.column_stride},
                         std::min(kRowsPerTask, a.rows - row), b.columns, a.columns,
                         results + (matrix * a.rows + row) * b.columns);
  });
}

}  // namespace

Status RunScalarProduct(KernelContext& context, OperandForm a_form, OperandForm b_form) {
  const DataType type = context.Output(0).type();
  const auto multiply = type == DataType::kDouble  ? &MultiplyStacks<double>
                        : DataTypeBits(type) == 32 ? &MultiplyStacks<uint32_t>
                                                   : &MultiplyStacks<uint64_t>;
  return multiply(context, a_form, b_form);
}

}  // namespace tenon
