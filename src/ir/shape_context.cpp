#include "ir/shape_context.h"

#include <algorithm>

namespace tenon {
namespace {

// This code is not one of the C ABI, and never leaves the library.
constexpr auto kUnknownShapeCode = static_cast<StatusCode>(1000);

// One dimension of a broadcast: 1 is replaced, equal sizes match, and a number has precedence over
// a symbol (which must then be that number or 1). Nothing if they contradict each other.
std::optional<Dim> BroadcastDims(const Dim& a, const Dim& b) {
  const bool is_contradiction =
      a.is_number() && b.is_number() && !(a == b) && !(a == Dim(1)) && !(b == Dim(1));
  if (is_contradiction) return std::nullopt;
  return Broadcast(a, b);
}

}  // namespace

Status UnknownShape() { return Status(kUnknownShapeCode, "the shape is not known"); }
bool IsUnknownShape(const Status& status) { return status.code() == kUnknownShapeCode; }

Result<SymbolicShape> ShapeContext::InputOfRank(size_t i, size_t rank) const {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, Input(i));
  if (shape.rank() != rank) {
    return InvalidArgument("input {}: expected rank {}, got shape {}", i, rank, shape);
  }
  return shape;
}

Result<Shape> ShapeContext::InputAsInts(size_t i) const {
  TENON_ASSIGN_OR_RETURN(const Dims dims, InputAsDims(i));
  Shape values(dims.size(), 0);
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (!dims[axis].is_number()) return Error(UnknownShape());
    values[axis] = dims[axis].value();
  }
  return values;
}

Result<SymbolicShape> BroadcastShapes(const SymbolicShape& a, const SymbolicShape& b) {
  const size_t rank = std::max(a.rank(), b.rank());
  SymbolicShape result;
  for (size_t i = 0; i < rank; ++i) {
    const Dim left = i + a.rank() < rank ? Dim(1) : a[i + a.rank() - rank];
    const Dim right = i + b.rank() < rank ? Dim(1) : b[i + b.rank() - rank];
    std::optional<Dim> dim = BroadcastDims(left, right);
    if (!dim) return InvalidArgument("shapes {} and {} cannot be broadcast together", a, b);
    result.Append(*dim);
  }
  return result;
}

}  // namespace tenon
