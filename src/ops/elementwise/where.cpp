// Where: elements of one tensor or the other.
#include "kernels/elementwise/broadcast.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Where-9. Shape computations use it to choose whole dimensions.
void FollowElements(ShapeContext& context) {
  const auto condition = context.KnownDims(0);
  const auto a = context.KnownDims(1);
  const auto b = context.KnownDims(2);
  if (!condition || !a || !b || a->size() != b->size() || condition->size() != a->size()) return;
  Dims chosen;
  for (size_t i = 0; i < a->size(); ++i) {
    const Dim& test = (*condition)[i];
    if ((*a)[i] == (*b)[i]) {
      chosen.push_back((*a)[i]);
    } else {
      chosen.push_back(!test.is_number() ? Dim::Unknown() : test == Dim(0) ? (*b)[i] : (*a)[i]);
    }
  }
  context.SetOutputDims(0, std::move(chosen));
}

Status InferWhere(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape condition, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape either, BroadcastShapes(a, b));
  TENON_ASSIGN_OR_RETURN(SymbolicShape output, BroadcastShapes(condition, either));
  FollowElements(context);
  return context.SetOutput(0, std::move(output));
}

void ChooseStrings(const kernels::BroadcastPlan& plan, const kernels::BroadcastTasks& tasks,
                   size_t task, KernelContext& context) {
  const auto* condition = static_cast<const uint8_t*>(context.Input(0).raw());
  const auto* a = context.Input(1).data<std::string>();
  const auto* b = context.Input(2).data<std::string>();
  auto* y = context.Output(0).data<std::string>();
  kernels::ForEachRunOfTask(
      plan, tasks, task, [&](const auto& offsets, size_t output_offset, size_t n) {
        for (size_t i = 0; i < n; ++i) {
          y[output_offset + i] = condition[offsets[0] + i * plan.inner_stride[0]]
                                     ? a[offsets[1] + i * plan.inner_stride[1]]
                                     : b[offsets[2] + i * plan.inner_stride[2]];
        }
      });
}

Status RunWhere(const NoAttrs&, KernelContext& context) {
  const std::span<const int64_t> shapes[] = {context.Input(0).shape().dims(),
                                             context.Input(1).shape().dims(),
                                             context.Input(2).shape().dims()};
  TENON_ASSIGN_OR_RETURN(const kernels::BroadcastPlan plan, kernels::MakeBroadcastPlan(shapes));
  Tensor& output = context.Output(0);
  const size_t element_bytes = DataTypeBits(output.type()) / 8;
  const kernels::BroadcastTasks tasks = kernels::SplitBroadcast(plan, CopyGrain(element_bytes));
  context.threads().ParallelFor(tasks.count, 1, [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      if (output.type() == DataType::kString) {
        ChooseStrings(plan, tasks, task, context);
      } else {
        kernels::RunBroadcastWhere(plan, tasks, task, element_bytes,
                                   static_cast<const uint8_t*>(context.Input(0).raw()),
                                   context.Input(1).raw(), context.Input(2).raw(), output.raw());
      }
    }
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferWhere, RunWhere>("Where", {.since = 9, .types = {DataType::kBool}}),
};

}  // namespace

TENON_OP_FAMILY(Where, kRows);

}  // namespace tenon
