// CenterCropPad: the centre of a tensor, cropped or padded with zeros.
#include <algorithm>

#include "ops/framework/element.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

// CenterCropPad-18.
struct CenterCropPadAttrs {
  std::optional<std::vector<int64_t>> axes;
  static constexpr auto Fields() { return std::tuple(Field("axes", &CenterCropPadAttrs::axes)); }
};

Status InferCenterCropPad(const CenterCropPadAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Dims target, context.InputAsDims(1));
  const size_t count = attrs.axes ? attrs.axes->size() : shape.rank();
  if (target.size() != count) {
    return InvalidArgument("input 1: expected {} sizes, one per axis, got {}", count,
                           target.size());
  }
  std::vector<bool> given(shape.rank(), false);
  for (size_t i = 0; i < count; ++i) {
    size_t axis = i;
    if (attrs.axes) {
      TENON_ASSIGN_OR_RETURN(axis, NormalizeAxis((*attrs.axes)[i], shape.rank()));
    }
    if (given[axis]) return InvalidArgument("axis {} is given twice", axis);
    given[axis] = true;
    if (target[i].is_number() && target[i].value() < 0) {
      return InvalidArgument("input 1: expected sizes >= 0, got {}", target[i]);
    }
    shape[axis] = target[i];
  }
  return context.SetOutput(0, std::move(shape));
}

Status RunCenterCropPad(const CenterCropPadAttrs&, KernelContext& context) {
  const Tensor& input = context.Input(0);
  Tensor& output = context.Output(0);
  if (output.size() == 0) return OkStatus();
  const Shape& from = input.shape();
  const Shape& to = output.shape();
  StridedCopy copy(input.type());
  int64_t from_stride = 1, to_stride = 1, first = 0, target = 0;
  Shape from_strides(from.rank(), 0), to_strides(from.rank(), 0);
  bool pads = false;
  for (size_t i = from.rank(); i-- > 0;) {
    from_strides[i] = from_stride;
    to_strides[i] = to_stride;
    // Rounded down: an odd element is cut off, or added, at the end.
    first += from_stride * (std::max<int64_t>(0, from[i] - to[i]) / 2);
    target += to_stride * (std::max<int64_t>(0, to[i] - from[i]) / 2);
    pads = pads || to[i] > from[i];
    from_stride *= from[i];
    to_stride *= to[i];
  }
  for (size_t i = 0; i < from.rank(); ++i) {
    TENON_RETURN_IF_ERROR(copy.AddAxis(std::min(from[i], to[i]), from_strides[i], to_strides[i]));
  }
  return VisitElement(input.type(), [&]<class T>(T zero) {
    if (pads) std::fill_n(output.data<T>(), output.size(), zero);
    if (input.size() == 0) return OkStatus();
    return copy.Run(input.data<T>() + first, output.data<T>() + target, context.threads());
  });
}

constexpr OpRow kRows[] = {
    Op<InferCenterCropPad, RunCenterCropPad>("CenterCropPad",
                                             {.since = 18, .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(CenterCropPad, kRows);

}  // namespace tenon
