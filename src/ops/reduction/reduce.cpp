// Reductions: ReduceSum and similar operators.
#include "kernels/reduce.h"

#include <algorithm>
#include <cstring>

#include "base/inline_array.h"
#include "ops/framework/element_type.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

using kernels::ReduceOp;

// Up to opset 12 (ReduceSum) or 17 (the others) the axes are an attribute, then an input.
struct ReduceAttrs {
  bool keepdims = true;
  bool noop_with_empty_axes = false;
  std::vector<int64_t> axes;
  static constexpr auto Fields() {
    return std::tuple(Field("keepdims", &ReduceAttrs::keepdims),
                      Field("noop_with_empty_axes", &ReduceAttrs::noop_with_empty_axes),
                      Field("axes", &ReduceAttrs::axes));
  }
};

// The axes that are reduced: no axes means all of them, or none if the attribute says so. As in
// NumPy, a scalar may be reduced along the first or last axis, which changes nothing.
Status FindReducedAxes(const ReduceAttrs& attrs, std::span<const int64_t> axes,
                       std::span<bool> reduced) {
  const bool is_scalar = reduced.empty();
  if (is_scalar && axes.size() == 1 && (axes[0] == 0 || axes[0] == -1)) return OkStatus();
  std::fill(reduced.begin(), reduced.end(), axes.empty() && !attrs.noop_with_empty_axes);
  for (const int64_t axis : axes) {
    TENON_ASSIGN_OR_RETURN(const size_t normalized, NormalizeAxis(axis, reduced.size()));
    if (reduced[normalized]) return InvalidArgument("axis {} is given twice", axis);
    reduced[normalized] = true;
  }
  return OkStatus();
}

Status InferReduced(const ReduceAttrs& attrs, std::span<const int64_t> axes,
                    ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  InlineArray<bool, kernels::kMaxReduceRank> reduced(x.rank());
  TENON_RETURN_IF_ERROR(FindReducedAxes(attrs, axes, reduced.span()));
  SymbolicShape y;
  for (size_t i = 0; i < x.rank(); ++i) {
    if (!reduced[i]) {
      y.Append(x[i]);
    } else if (attrs.keepdims) {
      y.Append(Dim(1));
    }
  }
  return context.SetOutput(0, std::move(y));
}

Status InferByAttribute(const ReduceAttrs& attrs, ShapeContext& context) {
  return InferReduced(attrs, attrs.axes, context);
}

Status InferByInput(const ReduceAttrs& attrs, ShapeContext& context) {
  if (!context.HasInput(1)) return InferReduced(attrs, {}, context);
  TENON_ASSIGN_OR_RETURN(const Shape axes, context.InputAsInts(1));
  return InferReduced(attrs, axes.dims(), context);
}

Status Reduce(ReduceOp op, const ReduceAttrs& attrs, std::span<const int64_t> axes,
              KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType type, ElementTypeOf(x.type()));
  size_t shape[kernels::kMaxReduceRank];
  bool reduced[kernels::kMaxReduceRank];
  if (x.rank() > kernels::kMaxReduceRank) {
    return NotImplemented("rank {}, above {}", x.rank(), kernels::kMaxReduceRank);
  }
  for (size_t i = 0; i < x.rank(); ++i) shape[i] = static_cast<size_t>(x.shape()[i]);
  TENON_RETURN_IF_ERROR(FindReducedAxes(attrs, axes, {reduced, x.rank()}));
  TENON_ASSIGN_OR_RETURN(
      const kernels::ReducePlan plan,
      kernels::MakeReducePlan({shape, x.rank()}, std::span<const bool>(reduced, x.rank())));
  context.threads().ParallelFor(plan.units, plan.grain, [&](size_t begin, size_t end) {
    kernels::RunReduce(plan, op, type, x.raw(), y.raw(), begin, end);
  });
  return OkStatus();
}

// The axes of the second input, which the shape function has checked.
std::span<const int64_t> AxesInput(KernelContext& context) {
  return context.HasInput(1) ? context.Input(1).values<int64_t>() : std::span<const int64_t>();
}

// Whether a single element is reduced to itself; the other operators still take its square or
// logarithm.
constexpr bool KeepsOneElement(ReduceOp op) {
  return op == ReduceOp::kSum || op == ReduceOp::kMean || op == ReduceOp::kMax ||
         op == ReduceOp::kMin || op == ReduceOp::kProd;
}

template <ReduceOp op, bool axes_are_input>
Status RunReduceOp(const ReduceAttrs& attrs, KernelContext& context) {
  const std::span<const int64_t> axes = axes_are_input ? AxesInput(context) : attrs.axes;
  if (KeepsOneElement(op) && axes.empty() && attrs.noop_with_empty_axes) {
    std::memcpy(context.Output(0).raw(), context.Input(0).raw(), context.Input(0).bytes());
    return OkStatus();
  }
  return Reduce(op, attrs, axes, context);
}

constexpr TypeSet kReducible =
    kInts | TypeSet{DataType::kFloat, DataType::kDouble, DataType::kBool};

template <ReduceOp op>
constexpr OpRow ByAttribute(std::string_view name) {
  return Op<InferByAttribute, RunReduceOp<op, false>>(name, {.since = 1, .types = kReducible});
}
template <ReduceOp op>
constexpr OpRow ByInput(std::string_view name, int32_t since = 18) {
  return Op<InferByInput, RunReduceOp<op, true>>(name, {.since = since, .types = kReducible});
}

constexpr OpRow kRows[] = {
    ByAttribute<ReduceOp::kSum>("ReduceSum"),
    ByInput<ReduceOp::kSum>("ReduceSum", 13),
    Op<InferByInput, RunReduceOp<ReduceOp::kSum, true>>(
        "ReduceSumTraining", {.domain = "com.microsoft", .types = kReducible}),
    ByAttribute<ReduceOp::kMean>("ReduceMean"),
    ByInput<ReduceOp::kMean>("ReduceMean"),
    ByAttribute<ReduceOp::kMax>("ReduceMax"),
    ByInput<ReduceOp::kMax>("ReduceMax"),
    ByAttribute<ReduceOp::kMin>("ReduceMin"),
    ByInput<ReduceOp::kMin>("ReduceMin"),
    ByAttribute<ReduceOp::kProd>("ReduceProd"),
    ByInput<ReduceOp::kProd>("ReduceProd"),
    ByAttribute<ReduceOp::kSumSquare>("ReduceSumSquare"),
    ByInput<ReduceOp::kSumSquare>("ReduceSumSquare"),
    ByAttribute<ReduceOp::kL1>("ReduceL1"),
    ByInput<ReduceOp::kL1>("ReduceL1"),
    ByAttribute<ReduceOp::kL2>("ReduceL2"),
    ByInput<ReduceOp::kL2>("ReduceL2"),
    ByAttribute<ReduceOp::kLogSum>("ReduceLogSum"),
    ByInput<ReduceOp::kLogSum>("ReduceLogSum"),
    ByAttribute<ReduceOp::kLogSumExp>("ReduceLogSumExp"),
    ByInput<ReduceOp::kLogSumExp>("ReduceLogSumExp"),
};

}  // namespace

TENON_OP_FAMILY(Reduce, kRows);

}  // namespace tenon
