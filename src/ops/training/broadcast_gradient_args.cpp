// BroadcastGradientArgs of com.microsoft: the axes along which the gradient of a result that was
// broadcast is summed for either operand, the last axis first.
#include <algorithm>
#include <array>

#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Of both operands.
using ReducedAxes = std::array<std::vector<int64_t>, 2>;

Result<ReducedAxes> FindReducedAxes(std::span<const int64_t> a, std::span<const int64_t> b) {
  ReducedAxes reduced;
  const size_t rank = std::max(a.size(), b.size());
  for (size_t back = 1; back <= rank; ++back) {
    const auto axis = static_cast<int64_t>(rank - back);
    if (back > a.size() || back > b.size()) {
      reduced[back > a.size() ? 0 : 1].push_back(axis);
      continue;
    }
    const int64_t left = a[a.size() - back], right = b[b.size() - back];
    if (left == right) continue;
    if (left != 1 && right != 1) {
      return InvalidArgument("the shapes of inputs 0 and 1 cannot be broadcast: sizes {} and {}",
                             left, right);
    }
    reduced[left == 1 ? 0 : 1].push_back(axis);
  }
  return reduced;
}

Status InferReducedAxes(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Shape a, context.InputAsInts(0));
  TENON_ASSIGN_OR_RETURN(const Shape b, context.InputAsInts(1));
  TENON_ASSIGN_OR_RETURN(const ReducedAxes reduced, FindReducedAxes(a.dims(), b.dims()));
  for (size_t i = 0; i < reduced.size() && i < context.output_count(); ++i) {
    TENON_RETURN_IF_ERROR(
        context.SetOutput(i, {Dim(static_cast<int64_t>(reduced[i].size()))}, DataType::kInt64));
    Dims axes;
    for (const int64_t axis : reduced[i]) axes.push_back(Dim(axis));
    context.SetOutputDims(i, std::move(axes));
  }
  return OkStatus();
}

Status RunReducedAxes(const NoAttrs&, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(
      const ReducedAxes reduced,
      FindReducedAxes(context.Input(0).values<int64_t>(), context.Input(1).values<int64_t>()));
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (!context.HasOutput(i)) continue;
    std::copy(reduced[i].begin(), reduced[i].end(), context.Output(i).data<int64_t>());
  }
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferReducedAxes, RunReducedAxes>("BroadcastGradientArgs",
                                         {.domain = "com.microsoft", .types = {DataType::kInt64}}),
};

}  // namespace

TENON_OP_FAMILY(BroadcastGradientArgs, kRows);

}  // namespace tenon
