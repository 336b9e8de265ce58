// DynamicTimeWarping of com.microsoft: the cheapest path through a matrix of costs.
#include <algorithm>
#include <vector>

#include "ops/framework/op_row.h"

namespace tenon {
namespace {

Status InferWarping(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape costs, context.Input(0));
  const bool fits =
      costs.rank() == 2 || (costs.rank() == 3 && (!costs[0].is_number() || costs[0].value() == 1));
  if (!fits) return InvalidArgument("input 0: expected [m, n] or [1, m, n], got {}", costs);
  return context.SetOutput(0, {Dim(2), Dim::Unknown()}, DataType::kInt32);
}

// The step that leads to an element of the matrix.
enum class Step : uint8_t { kDiagonal, kDown, kRight };

// For each element the last step of the cheapest path to it. Among equals, as in onnxruntime, the
// step along the row is taken, and the others only if they are cheaper than both.
PooledVector<Step> FindSteps(const float* costs, size_t rows, size_t columns) {
  PooledVector<Step> steps(rows * columns);
  PooledVector<float> above(columns), here(columns);  // sums of whole rows
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      Step step = Step::kRight;
      float sum = j > 0 ? here[j - 1] : 0;
      if (i > 0 && j == 0) {
        step = Step::kDown;
        sum = above[0];
      } else if (i > 0 && above[j - 1] < above[j] && above[j - 1] < sum) {
        step = Step::kDiagonal;
        sum = above[j - 1];
      } else if (i > 0 && above[j] < above[j - 1] && above[j] < sum) {
        step = Step::kDown;
        sum = above[j];
      }
      steps[i * columns + j] = step;
      here[j] = sum + costs[i * columns + j];
    }
    above.swap(here);
  }
  return steps;
}

Status RunWarping(const NoAttrs&, KernelContext& context) {
  const Tensor& costs = context.Input(0);
  const Shape& shape = costs.shape();
  if (shape.rank() != 2 && !(shape.rank() == 3 && shape[0] == 1)) {
    return InvalidArgument("input 0: expected [m, n] or [1, m, n], got {}", shape);
  }
  const auto rows = static_cast<size_t>(shape[shape.rank() - 2]);
  const auto columns = static_cast<size_t>(shape.back());
  PooledVector<std::pair<size_t, size_t>> path;  // backwards
  if (costs.size() > 0) {
    const PooledVector<Step> steps = FindSteps(costs.data<float>(), rows, columns);
    size_t i = rows - 1, j = columns - 1;
    path.emplace_back(i, j);
    while (i > 0 || j > 0) {
      const Step step = steps[i * columns + j];
      if (step != Step::kRight) --i;
      if (step != Step::kDown) --j;
      path.emplace_back(i, j);
    }
  }
  const auto length = static_cast<int64_t>(path.size());
  TENON_ASSIGN_OR_RETURN(Tensor* const y, context.AllocateOutput(0, DataType::kInt32, {2, length}));
  auto* into = y->data<int32_t>();
  for (int64_t t = 0; t < length; ++t) {
    const auto [i, j] = path[static_cast<size_t>(length - 1 - t)];
    into[t] = static_cast<int32_t>(i);
    into[length + t] = static_cast<int32_t>(j);
  }
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferWarping, RunWarping>(
        "DynamicTimeWarping",
        {.domain = "com.microsoft", .types = kFloat32Only, .traits = {.allocates_outputs = true}}),
};

}  // namespace

TENON_OP_FAMILY(DynamicTimeWarping, kRows);

}  // namespace tenon
