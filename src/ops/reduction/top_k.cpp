// TopK: the largest or smallest elements along an axis.
#include "kernels/search.h"
#include "ops/framework/element.h"
#include "ops/framework/element_type.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr TypeSet kComparable = kInts | TypeSet{DataType::kFloat, DataType::kDouble};

// TopK-11; TopK-1 has k as an attribute, TopK-10 lacks `largest` and `sorted`.
struct TopKAttrs {
  int64_t axis = -1;
  bool largest = true;
  bool sorted = true;
  int64_t k = -1;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &TopKAttrs::axis), Field("largest", &TopKAttrs::largest),
                      Field("sorted", &TopKAttrs::sorted), Field("k", &TopKAttrs::k));
  }
};

Status InferTopKOf(const TopKAttrs& attrs, const Dim& k, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  if (k.is_number() &&
      (k.value() < 0 || (shape[axis].is_number() && k.value() > shape[axis].value()))) {
    return InvalidArgument("expected k in [0, {}], got {}", shape[axis], k);
  }
  shape[axis] = k;
  TENON_RETURN_IF_ERROR(context.SetOutput(0, shape));
  return context.SetOutput(1, std::move(shape), DataType::kInt64);
}

Status InferTopK1(const TopKAttrs& attrs, ShapeContext& context) {
  return InferTopKOf(attrs, Dim(attrs.k), context);
}

Status InferTopK(const TopKAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Dims k, context.InputAsDims(1));
  if (k.size() != 1) return InvalidArgument("input 1: expected one number, got {}", k.size());
  return InferTopKOf(attrs, k[0], context);
}

Status RunTopK(const TopKAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  const Shape& shape = input.shape();
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType type, ElementTypeOf(input.type()));
  if (!context.HasOutput(0) || !context.HasOutput(1)) {
    return NotImplemented("TopK without one of its outputs");
  }
  Tensor& values = context.Output(0);
  if (values.size() == 0) return OkStatus();
  if (shape[axis] > UINT32_MAX) return NotImplemented("TopK of {} elements", shape[axis]);
  const kernels::TopKSizes sizes = {static_cast<size_t>(shape[axis]),
                                    static_cast<size_t>(values.shape()[axis]),
                                    static_cast<size_t>(shape.Product(axis + 1, shape.rank()))};
  const auto outer = static_cast<size_t>(shape.Product(0, axis));
  int64_t* indices = context.Output(1).data<int64_t>();
  return context.ForEachTask(
      outer, kernels::TopKWorkspaceBytes(sizes), [&](size_t task, std::byte* scratch) {
        kernels::TopK(sizes, {attrs.largest, attrs.sorted}, type, input.raw(), values.raw(),
                      indices, task, task + 1, scratch);
      });
}

constexpr OpRow kRows[] = {
    Op<InferTopK1, RunTopK>("TopK", {.since = 1, .types = kComparable}),
    Op<InferTopK, RunTopK>("TopK", {.since = 10, .types = kComparable}),
};

}  // namespace

TENON_OP_FAMILY(TopK, kRows);

}  // namespace tenon
