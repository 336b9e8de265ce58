// CumSum and CumProd: running sums and products along an axis.
#include "kernels/cumulative.h"

#include "ops/framework/element.h"
#include "ops/framework/element_type.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// CumSum-14, CumProd-26.
struct CumulativeAttrs {
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto Fields() {
    return std::tuple(Field("exclusive", &CumulativeAttrs::exclusive),
                      Field("reverse", &CumulativeAttrs::reverse));
  }
};

Status InferCumulative(const CumulativeAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape));
}

template <kernels::CumulativeOp op>
Status RunCumulative(const CumulativeAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Shape& shape = x.shape();
  TENON_ASSIGN_OR_RETURN(const Shape axes, IntegersOf(context.Input(1)));
  if (axes.rank() != 1) return InvalidArgument("input 1: expected one axis");
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(axes[0], shape.rank()));
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType type, ElementTypeOf(x.type()));
  if (x.size() == 0) return OkStatus();
  const kernels::CumulativePlan plan = {
      .op = op,
      .outer = static_cast<size_t>(shape.Product(0, axis)),
      .n = static_cast<size_t>(shape[axis]),
      .inner = static_cast<size_t>(shape.Product(axis + 1, shape.rank())),
      .exclusive = attrs.exclusive,
      .reverse = attrs.reverse};
  context.threads().ParallelFor(
      plan.tasks(), CopyGrain(plan.task_elements() * kernels::SizeOf(type)),
      [&](size_t begin, size_t end) {
        kernels::Cumulate(plan, type, x.raw(), context.Output(0).raw(), begin, end);
      });
  return OkStatus();
}

constexpr TypeSet kSummable = kInts | TypeSet{DataType::kFloat, DataType::kDouble};
constexpr TypeSet kMultipliable = {DataType::kFloat, DataType::kDouble, DataType::kInt32,
                                   DataType::kInt64, DataType::kUint32, DataType::kUint64};

constexpr OpRow kRows[] = {
    Op<InferCumulative, RunCumulative<kernels::CumulativeOp::kSum>>(
        "CumSum", {.since = 11, .types = kSummable, .traits = {.in_place_input = 0}}),
    Op<InferCumulative, RunCumulative<kernels::CumulativeOp::kProduct>>(
        "CumProd", {.since = 26, .types = kMultipliable, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(Cumulative, kRows);

}  // namespace tenon
