// ArgMax and ArgMin: the index of the extreme element of an axis. NaN counts as the extreme.
#include <algorithm>

#include "kernels/search.h"
#include "ops/framework/element.h"
#include "ops/framework/element_type.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// ArgMax-13; versions before 12 lack `select_last_index`.
struct ArgAttrs {
  int64_t axis;
  bool keepdims;
  bool select_last_index = false;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &ArgAttrs::axis), Field("keepdims", &ArgAttrs::keepdims),
                      Field("select_last_index", &ArgAttrs::select_last_index));
  }
};

Status InferArg(const ArgAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, input.rank()));
  if (input[axis] == Dim(0)) {
    return InvalidArgument("axis {} of {} has no elements to choose from", axis, input);
  }
  SymbolicShape output;
  for (size_t i = 0; i < input.rank(); ++i) {
    if (i != axis) output.Append(input[i]);
    if (i == axis && attrs.keepdims) output.Append(Dim(1));
  }
  return context.SetOutput(0, std::move(output), DataType::kInt64);
}

template <bool kMin>
Status RunArg(const ArgAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  const Shape& shape = input.shape();
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  const auto outer = static_cast<size_t>(shape.Product(0, axis));
  const kernels::ArgExtremeSizes sizes = {
      static_cast<size_t>(shape[axis]), static_cast<size_t>(shape.Product(axis + 1, shape.rank())),
      kMin, attrs.select_last_index};
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType type, ElementTypeOf(input.type()));
  auto* y = context.Output(0).data<int64_t>();
  const size_t grain = CopyGrain(sizes.n * sizes.inner * kernels::SizeOf(type));
  context.threads().ParallelFor(outer, grain, [&](size_t begin, size_t end) {
    kernels::ArgExtreme(sizes, type, input.raw(), y, begin, end);
  });
  return OkStatus();
}

constexpr TypeSet kComparable = kInts | TypeSet{DataType::kFloat, DataType::kDouble};

constexpr OpRow kRows[] = {
    Op<InferArg, RunArg<false>>("ArgMax", {.since = 1, .types = kComparable}),
    Op<InferArg, RunArg<true>>("ArgMin", {.since = 1, .types = kComparable}),
};

}  // namespace

TENON_OP_FAMILY(ArgReduce, kRows);

}  // namespace tenon
