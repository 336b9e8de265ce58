#include "ops/framework/expected_shape.h"

namespace tenon {

bool MayEqual(const SymbolicShape& a, const SymbolicShape& b) {
  bool equal = a.rank() == b.rank();
  for (size_t axis = 0; equal && axis < a.rank(); ++axis) equal = MayEqual(a[axis], b[axis]);
  return equal;
}

Status CheckInputsAreThere(const ShapeContext& context, size_t first) {
  for (size_t i = first; i < context.input_count(); ++i) {
    if (!context.HasInput(i)) return InvalidArgument("input {} is required and missing", i);
  }
  return OkStatus();
}

Status CheckInputShape(const ShapeContext& context, size_t i, const SymbolicShape& expected) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> shape = context.Input(i);
  if (!shape) return IsUnknownShape(shape.error()) ? OkStatus() : shape.error();
  if (MayEqual(*shape, expected)) return OkStatus();
  return InvalidArgument("input {}: expected {}, got {}", i, expected, *shape);
}

Status CheckElementCount(const ShapeContext& context, size_t i, const Dim& count) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> shape = context.Input(i);
  if (!shape) return IsUnknownShape(shape.error()) ? OkStatus() : shape.error();
  if (MayEqual(shape->NumElements(), count)) return OkStatus();
  return InvalidArgument("input {}: expected {} elements, got {}", i, count, *shape);
}

Status CheckElementType(const ShapeContext& context, size_t i, DataType type) {
  const DataType own = context.HasInput(i) ? context.ElementType(i) : DataType::kUndefined;
  if (own == type || own == DataType::kUndefined) return OkStatus();
  return InvalidArgument("input {}: expected {}, got {}", i, DataTypeName(type), DataTypeName(own));
}

Status CheckDoubles(const ShapeContext& context, size_t first, size_t last) {
  const DataType expected = context.ElementType(first);
  for (size_t i = first + 1; i <= last; ++i) {
    const DataType type = context.HasInput(i) ? context.ElementType(i) : DataType::kUndefined;
    if (type == DataType::kUndefined || expected == DataType::kUndefined) continue;
    if ((type == DataType::kDouble) == (expected == DataType::kDouble)) continue;
    return InvalidArgument("input {}: expected {} as input {}, got {}", i, DataTypeName(expected),
                           first, DataTypeName(type));
  }
  return OkStatus();
}

}  // namespace tenon
