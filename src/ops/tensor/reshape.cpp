// Operators that only change the shape of their input: no code runs for them.
#include <algorithm>

#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Identity-1: any value. Tensors are views; the executor shares other values by themselves.
Status InferIdentity(const NoAttrs&, ShapeContext& context) {
  const ValueType type = context.InputType(0);
  if (!type.is_tensor()) return context.SetOutputType(0, type);
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  if (auto dims = context.KnownDims(0)) context.SetOutputDims(0, std::move(*dims));
  // Of the input's own type: an optional that holds a tensor is a tensor at run time.
  return context.SetOutput(0, std::move(shape), type.element_type);
}

// Reshape-14: 0 copies the input's dimension unless `allowzero`, -1 is whatever remains.
struct ReshapeAttrs {
  bool allowzero = false;
  static constexpr auto Fields() {
    return std::tuple(Field("allowzero", &ReshapeAttrs::allowzero));
  }
};

Result<SymbolicShape> ReshapeTo(const SymbolicShape& input, const Dims& requested, bool allowzero) {
  SymbolicShape output;
  std::optional<size_t> inferred;
  for (size_t i = 0; i < requested.size(); ++i) {
    Dim dim = requested[i];
    if (dim == Dim(0) && !allowzero) {
      if (i >= input.rank()) {
        return InvalidArgument("shape[{}] = 0 copies a dimension that input 0 {} does not have", i,
                               input);
      }
      dim = input[i];
    } else if (dim == Dim(-1)) {
      if (inferred) return InvalidArgument("expected at most one -1 in the shape, got two");
      inferred = i;
      dim = Dim(1);
    } else if (dim.is_number() && dim.value() < 0) {
      return InvalidArgument("expected shape entries >= -1, got {}", dim);
    }
    output.Append(std::move(dim));
  }
  const Dim elements = input.NumElements();
  const Dim others = output.NumElements();
  const auto mismatch = [&] {
    return InvalidArgument("expected a shape for the {} elements of input 0 {}, got {}", elements,
                           input, SymbolicShape(requested));
  };
  if (inferred) {
    if (elements.is_number() && others.is_number() &&
        (others.value() == 0 || elements.value() % others.value() != 0)) {
      return mismatch();
    }
    output[*inferred] = FloorDiv(elements, others);
  } else if (elements.is_number() && others.is_number() && !(elements == others)) {
    return mismatch();
  }
  return output;
}

// The output's shape from a requested shape, if the input's shape is unknown.
SymbolicShape RequestedShape(Dims requested) {
  for (Dim& dim : requested) {
    if (!dim.is_number() || dim.value() <= 0) dim = Dim::Unknown();
  }
  return SymbolicShape(std::move(requested));
}

Status InferReshape(const ReshapeAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Dims requested, context.InputAsDims(1));
  const Result<SymbolicShape> input = context.Input(0);
  if (!input && IsUnknownShape(input.error())) {
    return context.SetOutput(0, RequestedShape(requested));
  }
  TENON_RETURN_IF_ERROR(input);
  TENON_ASSIGN_OR_RETURN(SymbolicShape output, ReshapeTo(*input, requested, attrs.allowzero));
  if (auto dims = context.KnownDims(0)) context.SetOutputDims(0, std::move(*dims));
  return context.SetOutput(0, std::move(output));
}

// Reshape-1: the shape is an attribute.
struct Reshape1Attrs {
  std::vector<int64_t> shape;
  static constexpr auto Fields() { return std::tuple(Field("shape", &Reshape1Attrs::shape)); }
};

Status InferReshape1(const Reshape1Attrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(SymbolicShape output,
                         ReshapeTo(input, Dims(attrs.shape.begin(), attrs.shape.end()), false));
  return context.SetOutput(0, std::move(output));
}

// Flatten-1: two axes, split before `axis`.
struct FlattenAttrs {
  int64_t axis;
  static constexpr auto Fields() { return std::tuple(Field("axis", &FlattenAttrs::axis)); }
};

Status InferFlatten(const FlattenAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  const auto rank = static_cast<int64_t>(input.rank());
  if (attrs.axis < -rank || attrs.axis > rank) {
    return InvalidArgument("expected axis in [{}, {}], got {}", -rank, rank, attrs.axis);
  }
  const auto axis = static_cast<size_t>(attrs.axis < 0 ? attrs.axis + rank : attrs.axis);
  return context.SetOutput(0, {input.Product(0, axis), input.Product(axis, input.rank())});
}

// The axes, counted from the front. With `once`, an axis that is given twice is an error.
Result<PooledVector<bool>> MarkAxes(std::span<const int64_t> axes, size_t rank, bool once) {
  PooledVector<bool> marked(rank, false);
  for (const int64_t axis : axes) {
    TENON_ASSIGN_OR_RETURN(const size_t normalized, NormalizeAxis(axis, rank));
    if (once && marked[normalized]) return InvalidArgument("axis {} is given twice", axis);
    marked[normalized] = true;
  }
  return marked;
}

// Squeeze and Unsqueeze take their axes as an attribute before opset 13 and as an input since.
struct AxesAttrs {
  std::vector<int64_t> axes;
  static constexpr auto Fields() { return std::tuple(Field("axes", &AxesAttrs::axes)); }
};

Status SqueezeTo(std::optional<std::span<const int64_t>> axes, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  PooledVector<bool> removed(input.rank(), false);
  if (axes) {
    TENON_ASSIGN_OR_RETURN(removed, MarkAxes(*axes, input.rank(), false));
  } else {
    for (size_t i = 0; i < input.rank(); ++i) {
      if (!input[i].is_number()) return UnknownShape();
      removed[i] = input[i] == Dim(1);
    }
  }
  SymbolicShape output;
  for (size_t i = 0; i < input.rank(); ++i) {
    if (!removed[i]) {
      output.Append(input[i]);
    } else if (input[i].is_number() && !(input[i] == Dim(1))) {
      return InvalidArgument("expected size 1 at axis {}, which is removed, got {} in {}", i,
                             input[i], input);
    }
  }
  if (auto dims = context.KnownDims(0)) context.SetOutputDims(0, std::move(*dims));
  return context.SetOutput(0, std::move(output));
}

Status InferSqueeze1(const AxesAttrs& attrs, ShapeContext& context) {
  if (attrs.axes.empty()) return SqueezeTo(std::nullopt, context);
  return SqueezeTo(attrs.axes, context);
}

Status InferSqueeze(const NoAttrs&, ShapeContext& context) {
  if (!context.HasInput(1)) return SqueezeTo(std::nullopt, context);
  TENON_ASSIGN_OR_RETURN(const Shape axes, context.InputAsInts(1));
  return SqueezeTo(axes.dims(), context);
}

Status UnsqueezeTo(std::span<const int64_t> axes, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const PooledVector<bool> added,
                         MarkAxes(axes, input.rank() + axes.size(), true));
  SymbolicShape output;
  size_t next = 0;
  for (const bool is_new : added) output.Append(is_new ? Dim(1) : input[next++]);
  if (auto dims = context.KnownDims(0)) context.SetOutputDims(0, std::move(*dims));
  return context.SetOutput(0, std::move(output));
}

Status InferUnsqueeze1(const AxesAttrs& attrs, ShapeContext& context) {
  return UnsqueezeTo(attrs.axes, context);
}

Status InferUnsqueeze(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Shape axes, context.InputAsInts(1));
  return UnsqueezeTo(axes.dims(), context);
}

constexpr OpRow kRows[] = {
    View<InferIdentity>("Identity", {.since = 1}),
    View<InferIdentity>("After", {.domain = "com.tenon"}),
    View<InferReshape1>("Reshape", {.since = 1}),
    View<InferReshape>("Reshape", {.since = 5}),
    View<InferFlatten>("Flatten", {.since = 1}),
    View<InferSqueeze1>("Squeeze", {.since = 1}),
    View<InferSqueeze>("Squeeze", {.since = 13}),
    View<InferUnsqueeze1>("Unsqueeze", {.since = 1}),
    View<InferUnsqueeze>("Unsqueeze", {.since = 13}),
};

}  // namespace

TENON_OP_FAMILY(Reshape, kRows);

}  // namespace tenon
