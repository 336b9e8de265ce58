#include "ops/conv/conv_shapes.h"

#include <algorithm>
#include <iterator>

namespace tenon {

Result<Shape> KernelShapeOf(const WindowAttrs& attrs, const SymbolicShape& weights) {
  Shape kernel;
  const size_t rank = weights.rank() - 2;
  if (!attrs.kernel_shape.empty() && attrs.kernel_shape.size() != rank) {
    return InvalidArgument("expected {} kernel sizes for the weights {}, got {}", rank, weights,
                           attrs.kernel_shape.size());
  }
  for (size_t i = 0; i < rank; ++i) {
    const Dim& size = weights[i + 2];
    if (attrs.kernel_shape.empty()) {
      if (!size.is_number()) return Error(UnknownShape());
      kernel.Append(size.value());
    } else {
      if (size.is_number() && !(size == Dim(attrs.kernel_shape[i]))) {
        return InvalidArgument("input 1: expected kernel_shape {} as kernel, got {}",
                               Shape(std::span<const int64_t>(attrs.kernel_shape)), weights);
      }
      kernel.Append(attrs.kernel_shape[i]);
    }
  }
  return kernel;
}

Status CheckGroup(int64_t group, const Dim& channels, size_t input) {
  if (group < 1) return InvalidArgument("expected group >= 1, got {}", group);
  if (channels.is_number() && channels.value() % group != 0) {
    return InvalidArgument("input {}: expected a multiple of group = {} channels, got {}", input,
                           group, channels);
  }
  return OkStatus();
}

Status CheckConvBias(const ShapeContext& context, const Dim& channels, size_t input) {
  if (!context.HasInput(input)) return OkStatus();
  const Result<SymbolicShape> bias = context.Input(input);
  if (!bias) return IsUnknownShape(bias.error()) ? OkStatus() : bias.error();
  const bool fits = bias->rank() == 1 &&
                    (!(*bias)[0].is_number() || !channels.is_number() || (*bias)[0] == channels);
  if (fits) return OkStatus();
  return InvalidArgument("input {}: expected one bias per output channel, [{}], got {}", input,
                         channels, *bias);
}

Result<SymbolicShape> ConvOutput(const ConvAttrs& attrs, const SymbolicShape& x,
                                 const ShapeContext& context, size_t most) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape w, context.Input(1));
  if (w.rank() > 0) TENON_RETURN_IF_ERROR(CheckConvBias(context, w[0]));
  return ConvOutput(attrs, x, w, most);
}

Result<SymbolicShape> ConvOutput(const ConvAttrs& attrs, const SymbolicShape& x,
                                 const SymbolicShape& w, size_t most) {
  if (x.rank() < 3) {
    return InvalidArgument("input 0: expected [N, C, spatial...], got {}", x);
  }
  if (w.rank() != x.rank()) {
    return InvalidArgument("input 1: expected rank {} to match input 0 {}, got {}", x.rank(), x, w);
  }
  TENON_RETURN_IF_ERROR(CheckGroup(attrs.group, w[0], 1));
  const Dim channels = w[1] * Dim(attrs.group);
  if (x[1].is_number() && channels.is_number() && !(x[1] == channels)) {
    return InvalidArgument(
        "input 0: expected {} channels for the weights {} and group = {}, got {}", channels, w,
        attrs.group, x);
  }
  TENON_ASSIGN_OR_RETURN(const Shape kernel, KernelShapeOf(attrs, w));
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs, kernel.dims(), most));
  SymbolicShape y = {x[0], w[0]};
  for (size_t i = 0; i < window.rank; ++i) {
    TENON_ASSIGN_OR_RETURN(Dim steps, WindowSteps(window, i, x[i + 2], false));
    y.Append(std::move(steps));
  }
  return y;
}

Status CheckConvResidual(const ShapeContext& context, const SymbolicShape& y) {
  if (!context.HasInput(3)) return OkStatus();
  const Result<SymbolicShape> z = context.Input(3);
  if (!z) return IsUnknownShape(z.error()) ? OkStatus() : z.error();
  bool fits = z->rank() == y.rank();
  for (size_t i = 0; fits && i < y.rank(); ++i) {
    fits = !(*z)[i].is_number() || !y[i].is_number() || (*z)[i] == y[i];
  }
  if (fits) return OkStatus();
  return InvalidArgument("input 3: expected the output's shape {}, got {}", y, *z);
}

kernels::ConvGeneralShape GeneralConvShape(const Window& window, const Shape& x, const Shape& y,
                                           int64_t group) {
  kernels::ConvGeneralShape shape;
  shape.batch = static_cast<size_t>(x[0]);
  shape.in_channels = static_cast<size_t>(x[1]);
  shape.out_channels = static_cast<size_t>(y[1]);
  shape.groups = static_cast<size_t>(group);
  for (size_t i = 0; i < window.rank; ++i) {
    const WindowDim dim = PaddedDim(window, i, x[i + 2]);
    shape.dims[kMaxWindowRank - window.rank + i] = {
        static_cast<size_t>(x[i + 2]),     static_cast<size_t>(y[i + 2]),
        static_cast<size_t>(dim.kernel),   static_cast<size_t>(dim.stride),
        static_cast<size_t>(dim.dilation), static_cast<size_t>(dim.pad_begin)};
  }
  // The kernel runs along the last axis. If that has one element, as in a sequence stored as an
  // image of width 1, the axis before it is used instead; the order of elements is the same.
  const auto is_trivial = [](const auto& dim) {
    return dim.in == 1 && dim.out == 1 && dim.kernel == 1;
  };
  for (size_t turn = 1; turn < kMaxWindowRank && is_trivial(shape.dims[kMaxWindowRank - 1]);
       ++turn) {
    std::rotate(std::begin(shape.dims), std::end(shape.dims) - 1, std::end(shape.dims));
  }
  return shape;
}

}  // namespace tenon
