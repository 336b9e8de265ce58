// UnfoldTensor of com.microsoft: all windows along an axis, side by side.
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

struct UnfoldAttrs {
  int64_t axis = -1, size = 1, step = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("dim", &UnfoldAttrs::axis), Field("size", &UnfoldAttrs::size),
                      Field("step", &UnfoldAttrs::step));
  }
};

Status InferUnfold(const UnfoldAttrs& attrs, ShapeContext& context) {
  if (attrs.size < 1) return InvalidArgument("expected size >= 1, got {}", attrs.size);
  if (attrs.step < 1) return InvalidArgument("expected step >= 1, got {}", attrs.step);
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  if (shape[axis].is_number() && shape[axis].value() < attrs.size) {
    return InvalidArgument("expected size <= {}, the dimension of axis {}, got {}", shape[axis],
                           axis, attrs.size);
  }
  shape[axis] = FloorDiv(shape[axis] - Dim(attrs.size), Dim(attrs.step)) + Dim(1);
  shape.Append(Dim(attrs.size));
  return context.SetOutput(0, std::move(shape));
}

Status RunUnfold(const UnfoldAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  int64_t inner = 1;
  for (size_t i = axis + 1; i < x.rank(); ++i) inner *= x.shape()[i];
  const int64_t dim = x.shape()[axis], windows = y.shape()[axis];
  const int64_t outer = x.size() / (dim * inner);
  // A single window has no next one, whatever the step.
  const int64_t step = windows > 1 ? attrs.step * inner : 0;
  StridedCopy copy(x.type());
  TENON_RETURN_IF_ERROR(copy.AddAxis(outer, dim * inner, windows * inner * attrs.size));
  TENON_RETURN_IF_ERROR(copy.AddAxis(windows, step, inner * attrs.size));
  TENON_RETURN_IF_ERROR(copy.AddAxis(inner, 1, attrs.size));
  TENON_RETURN_IF_ERROR(copy.AddAxis(attrs.size, inner, 1));
  return copy.Run(x.raw(), y.raw(), context.threads());
}

constexpr OpRow kRows[] = {
    Op<InferUnfold, RunUnfold>("UnfoldTensor",
                               {.domain = "com.microsoft", .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(UnfoldTensor, kRows);

}  // namespace tenon
