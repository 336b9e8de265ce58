// CumSum: running sums along an axis.
#include "kernels/search.h"
#include "ops/framework/element.h"
#include "ops/framework/element_type.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr TypeSet kSummable = kInts | TypeSet{DataType::kFloat, DataType::kDouble};

// CumSum-14.
struct CumSumAttrs {
  bool exclusive = false;
  bool reverse = false;
  static constexpr auto Fields() {
    return std::tuple(Field("exclusive", &CumSumAttrs::exclusive),
                      Field("reverse", &CumSumAttrs::reverse));
  }
};

Status InferCumSum(const CumSumAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape));
}

Status RunCumSum(const CumSumAttrs& attrs, KernelContext& context) {
  const Tensor& input = context.Input(0);
  const Shape& shape = input.shape();
  TENON_ASSIGN_OR_RETURN(const Shape axes, IntegersOf(context.Input(1)));
  if (axes.rank() != 1) return InvalidArgument("input 1: expected one axis");
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(axes[0], shape.rank()));
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType type, ElementTypeOf(input.type()));
  if (input.size() == 0) return OkStatus();
  const kernels::CumSumSizes sizes = {static_cast<size_t>(shape[axis]),
                                      static_cast<size_t>(shape.Product(axis + 1, shape.rank())),
                                      attrs.exclusive, attrs.reverse};
  const size_t grain = CopyGrain(sizes.n * sizes.inner * kernels::SizeOf(type));
  context.threads().ParallelFor(
      static_cast<size_t>(shape.Product(0, axis)), grain, [&](size_t begin, size_t end) {
        kernels::CumSum(sizes, type, input.raw(), context.Output(0).raw(), begin, end);
      });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferCumSum, RunCumSum>("CumSum",
                               {.since = 11, .types = kSummable, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(CumSum, kRows);

}  // namespace tenon
