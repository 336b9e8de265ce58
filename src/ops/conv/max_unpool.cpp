// MaxUnpool: puts the maxima of MaxPool back to their positions.
#include <algorithm>

#include "ops/conv/window.h"
#include "ops/framework/element.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// MaxUnpool-11.
struct MaxUnpoolAttrs : WindowAttrs {
  static constexpr auto Fields() {
    using A = MaxUnpoolAttrs;
    return std::tuple(Field("kernel_shape", &A::kernel_shape), Field("pads", &A::pads),
                      Field("strides", &A::strides));
  }
};

// The shape of the pool's input, to which the indices refer.
Result<SymbolicShape> PooledFrom(const MaxUnpoolAttrs& attrs, SymbolicShape x) {
  if (x.rank() < 3 || attrs.kernel_shape.size() != x.rank() - 2) {
    return InvalidArgument("expected a kernel size for each spatial axis of input 0 {}, got {}", x,
                           attrs.kernel_shape.size());
  }
  TENON_ASSIGN_OR_RETURN(const Window window,
                         MakeWindow(attrs, attrs.kernel_shape, kMostWindowRank));
  for (size_t i = 0; i < window.rank; ++i) {
    const WindowDim& dim = window.dims[i];
    x[i + 2] =
        (x[i + 2] - Dim(1)) * Dim(dim.stride) + Dim(dim.kernel - dim.pad_begin - dim.pad_end);
    if (x[i + 2].is_number() && x[i + 2].value() < 0) {
      return InvalidArgument("spatial axis {}: the pads are longer than the output", i);
    }
  }
  return x;
}

[[gnu::cold]] Status InferMaxUnpool(const MaxUnpoolAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape indices, context.Input(1));
  if (x.ToShape() && indices.ToShape() && !(x == indices)) {
    return InvalidArgument("input 1: expected the shape {} of input 0, got {}", x, indices);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, PooledFrom(attrs, x));
  if (!context.HasInput(2)) return context.SetOutput(0, std::move(y));
  TENON_ASSIGN_OR_RETURN(SymbolicShape target, context.InputAsDims(2).map([](auto dims) {
    return SymbolicShape(std::move(dims));
  }));
  if (target.rank() != y.rank()) {
    return InvalidArgument("input 2: expected {} sizes, got {}", y.rank(), target.rank());
  }
  for (size_t i = 0; i < y.rank(); ++i) {
    const bool fits = !target[i].is_number() || !y[i].is_number() ||
                      (i < 2 ? target[i] == y[i] : target[i].value() >= y[i].value());
    if (!fits) {
      return InvalidArgument("input 2: expected an output that {} fits into, got {}", y, target);
    }
  }
  return context.SetOutput(0, std::move(target));
}

// The position in `outer` of element `index` of `inner`, which lies at its beginning on each axis.
int64_t PositionIn(const Shape& outer, const Shape& inner, int64_t index) {
  int64_t position = 0, stride = 1;
  for (size_t i = inner.rank(); i-- > 0;) {
    position += index % inner[i] * stride;
    index /= inner[i];
    stride *= outer[i];
  }
  return position;
}

Status RunMaxUnpool(const MaxUnpoolAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& output = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape pooled, PooledFrom(attrs, SymbolicShape(x.shape())));
  const std::optional<Shape> from = pooled.ToShape();
  if (!from) return InvalidArgument("expected an output that memory can hold");
  TENON_ASSIGN_OR_RETURN(const int64_t size, from->CheckedNumElements());
  const std::span<const int64_t> indices = context.Input(1).values<int64_t>();
  for (size_t i = 0; i < indices.size(); ++i) {
    if (indices[i] < 0 || indices[i] >= size) {
      return InvalidArgument("input 1: expected indices in [0, {}), got {} at {}", size, indices[i],
                             i);
    }
  }
  const bool same = *from == output.shape();
  VisitElement(x.type(), [&]<class T>(T) {
    T* y = output.data<T>();
    std::fill_n(y, output.size(), T());
    for (size_t i = 0; i < indices.size(); ++i) {
      y[same ? indices[i] : PositionIn(output.shape(), *from, indices[i])] = x.data<T>()[i];
    }
  });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferMaxUnpool, RunMaxUnpool>("MaxUnpool", {.since = 9, .types = kFloats}),
};

}  // namespace

TENON_OP_FAMILY(MaxUnpool, kRows);

}  // namespace tenon
