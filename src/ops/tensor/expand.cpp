// Expand and Tile: elements repeated along axes.
#include "base/arithmetic.h"
#include "ops/framework/element.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"
#include "ops/framework/strided_copy.h"

namespace tenon {
namespace {

// Expand-8: broadcasts the input with the shape in input 1.
Status InferExpand(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape input, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Dims requested, context.InputAsDims(1));
  for (const Dim& dim : requested) {
    if (dim.is_number() && dim.value() < 0) {
      return InvalidArgument("expected shape entries >= 0, got {}", SymbolicShape(requested));
    }
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape output, BroadcastShapes(input, SymbolicShape(requested)));
  auto elements = context.KnownDims(0);
  if (elements && elements->size() == 1 && output.rank() <= 1) {
    const Dim count = output.NumElements();
    constexpr int64_t kMostKnown = 64;
    if (count.is_number() && count.value() <= kMostKnown) {
      context.SetOutputDims(0, Dims(static_cast<size_t>(count.value()), (*elements)[0]));
    }
  }
  return context.SetOutput(0, std::move(output));
}

Status RunExpand(const NoAttrs&, KernelContext& context) {
  const Tensor& input = context.Input(0);
  Tensor& output = context.Output(0);
  if (output.size() == 0) return OkStatus();
  const size_t added = output.rank() - input.rank();
  StridedCopy copy(input.type());
  int64_t source_stride = input.size();
  int64_t target_stride = output.size();
  for (size_t i = 0; i < output.rank(); ++i) {
    const int64_t size = output.shape()[i];
    target_stride /= size;
    const int64_t dim = i < added ? 1 : input.shape()[i - added];
    source_stride /= dim;
    TENON_RETURN_IF_ERROR(copy.AddAxis(size, dim == 1 ? 0 : source_stride, target_stride));
  }
  return copy.Run(input.raw(), output.raw(), context.threads());
}

// Tile-6: each axis repeated.
Status InferTile(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  TENON_RETURN_IF_ERROR(context.InputOfRank(1, 1));
  TENON_ASSIGN_OR_RETURN(const Dims repeats, context.InputAsDims(1));
  if (repeats.size() != shape.rank()) {
    return InvalidArgument("expected a repeat for each axis of {}, got {}", shape,
                           SymbolicShape(repeats));
  }
  for (size_t i = 0; i < repeats.size(); ++i) {
    if (repeats[i].is_number() && repeats[i].value() < 0) {
      return InvalidArgument("expected repeats >= 0, got {}", SymbolicShape(repeats));
    }
    shape[i] = shape[i] * repeats[i];
  }
  return context.SetOutput(0, std::move(shape));
}

Status RunTile(const NoAttrs&, KernelContext& context) {
  const Tensor& input = context.Input(0);
  Tensor& output = context.Output(0);
  if (output.size() == 0) return OkStatus();
  StridedCopy copy(input.type());
  int64_t source_stride = input.size();
  int64_t target_stride = output.size();
  for (size_t i = 0; i < output.rank(); ++i) {
    const int64_t size = input.shape()[i];
    const int64_t repeats = output.shape()[i] / size;
    target_stride /= output.shape()[i];
    source_stride /= size;
    TENON_RETURN_IF_ERROR(copy.AddAxis(repeats, 0, size * target_stride));
    TENON_RETURN_IF_ERROR(copy.AddAxis(size, source_stride, target_stride));
  }
  return copy.Run(input.raw(), output.raw(), context.threads());
}

// Tile-1: one axis, and the number of its repetitions.
Status InferTile1(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  int64_t numbers[2];
  for (size_t i = 0; i < 2; ++i) {
    const Tensor* input = context.InputData(i + 1);
    if (input == nullptr) {
      for (size_t k = 0; k < shape.rank(); ++k) shape[k] = Dim::Unknown();
      return context.SetOutput(0, std::move(shape));
    }
    TENON_ASSIGN_OR_RETURN(const Shape values, WholeNumbersOf(*input));
    if (values.rank() != 1) return InvalidArgument("input {}: expected one number", i + 1);
    numbers[i] = values[0];
  }
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(numbers[1], shape.rank()));
  if (numbers[0] < 0) return InvalidArgument("expected repeats >= 0, got {}", numbers[0]);
  shape[axis] = shape[axis] * Dim(numbers[0]);
  return context.SetOutput(0, std::move(shape));
}

constexpr OpRow kRows[] = {
    Op<InferExpand, RunExpand>("Expand", {.since = 8, .types = kWholeByteTypes}),
    Op<InferTile1, RunTile>("Tile", {.since = 1, .types = kWholeByteTypes}),
    Op<InferTile, RunTile>("Tile", {.since = 6, .types = kWholeByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(Expand, kRows);

}  // namespace tenon
