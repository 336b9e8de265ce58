// Operators that turn the shape of a value into data.
#include <algorithm>

#include "ops/framework/op_row.h"

namespace tenon {
namespace {

constexpr KernelTraits kShapeTraits = {.reads_shapes_only = true};

// Shape-15: the dimensions [start, end) of the input, as int64.
struct ShapeAttrs {
  int64_t start = 0;
  std::optional<int64_t> end;
  static constexpr auto Fields() {
    return std::tuple(Field("start", &ShapeAttrs::start), Field("end", &ShapeAttrs::end));
  }
};

// Both ends are clamped; negative ones count from the end.
std::pair<size_t, size_t> Range(const ShapeAttrs& attrs, size_t rank) {
  const auto limit = static_cast<int64_t>(rank);
  const auto clamp = [limit](int64_t axis) {
    return std::clamp<int64_t>(axis < 0 ? axis + limit : axis, 0, limit);
  };
  const int64_t first = clamp(attrs.start);
  const int64_t last = std::max(first, clamp(attrs.end.value_or(limit)));
  return {static_cast<size_t>(first), static_cast<size_t>(last)};
}

Status InferShape(const ShapeAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  const auto [first, last] = Range(attrs, input.rank());
  context.SetOutputDims(0, Dims(input.begin() + static_cast<ptrdiff_t>(first),
                                input.begin() + static_cast<ptrdiff_t>(last)));
  return context.SetOutput(0, {Dim(static_cast<int64_t>(last - first))}, DataType::kInt64);
}

Status RunShape(const ShapeAttrs& attrs, KernelContext& context) {
  const Shape& shape = context.Input(0).shape();
  const auto [first, last] = Range(attrs, shape.rank());
  std::copy(shape.begin() + first, shape.begin() + last, context.Output(0).data<int64_t>());
  return OkStatus();
}

// Size-1: the number of elements, as an int64 scalar.
Status InferSize(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  context.SetOutputDims(0, {input.NumElements()});
  return context.SetOutput(0, {}, DataType::kInt64);
}

Status RunSize(const NoAttrs&, KernelContext& context) {
  *context.Output(0).data<int64_t>() = context.Input(0).size();
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferShape, RunShape>("Shape", {.since = 1, .traits = kShapeTraits}),
    Op<InferSize, RunSize>("Size", {.since = 1, .traits = kShapeTraits}),
};

}  // namespace

TENON_OP_FAMILY(Shape, kRows);

}  // namespace tenon
