// GatherGrad of com.microsoft: dX has the sums of the slices of dY that were gathered from there.
#include <algorithm>

#include "kernels/elementwise/elementwise.h"
#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/indices.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kShape, kIndices, kDy };

struct AxisAttrs {
  int64_t axis = 0;
  static constexpr auto Fields() { return std::tuple(Field("axis", &AxisAttrs::axis)); }
};

Status InferGatherGradient(const AxisAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Dims dims, context.InputAsDims(kShape));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, dims.size()));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.Input(kIndices));
  SymbolicShape x, y;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i].is_number() && dims[i].value() < 0) {
      return InvalidArgument("input 0: expected sizes >= 0, got {}", dims[i]);
    }
    x.Append(dims[i]);
    if (i != axis) y.Append(dims[i]);
    for (size_t k = 0; i == axis && k < indices.rank(); ++k) y.Append(indices[k]);
  }
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kDy, y));
  return context.SetOutput(0, std::move(x));
}

// Every task has some rows of one [dim, inner] of dX, and goes through the indices in order.
Status RunGatherGradient(const AxisAttrs& attrs, KernelContext& context) {
  const Tensor& indices = context.Input(kIndices);
  const float* dy = context.Input(kDy).data<float>();
  float* dx = context.Output(0).data<float>();
  const Shape& shape = context.Output(0).shape();
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, shape.rank()));
  TENON_RETURN_IF_ERROR(CheckIndices(indices, shape[axis], axis));
  const auto outer = static_cast<size_t>(shape.Product(0, axis));
  const auto dim = static_cast<size_t>(shape[axis]);
  const auto inner = static_cast<size_t>(shape.Product(axis + 1, shape.rank()));
  const auto count = static_cast<size_t>(indices.size());
  if (outer * dim * inner == 0) return OkStatus();
  constexpr size_t kMostParts = 16;
  const size_t parts = std::min(dim, outer >= kMostParts ? 1 : kMostParts / outer);
  const auto add =
      kernels::FindBinary(kernels::BinaryOp::kAdd, kernels::ElementType::kFloat).vector_vector;
  const size_t work = (dim * inner + count * inner) / parts * sizeof(float);
  context.threads().ParallelFor(outer * parts, CopyGrain(work), [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      const size_t block = task / parts, part = task % parts;
      const size_t first = dim * part / parts, last = dim * (part + 1) / parts;
      float* const to = dx + block * dim * inner;
      const float* const from = dy + block * count * inner;
      std::fill(to + first * inner, to + last * inner, 0.0f);
      VisitIndices(indices, [&](const auto* index) {
        for (size_t i = 0; i < count; ++i) {
          const size_t row = WrapIndex(index[i], dim);
          if (row < first || row >= last) continue;
          if (inner == 1) {
            to[row] += from[i];
          } else {
            add(to + row * inner, from + i * inner, to + row * inner, inner);
          }
        }
      });
    }
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferGatherGradient, RunGatherGradient>(
        "GatherGrad", {.domain = "com.microsoft", .types = kFloat32Only, .typed_input = kDy}),
};

}  // namespace

TENON_OP_FAMILY(GatherGradient, kRows);

}  // namespace tenon
