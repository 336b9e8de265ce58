// MaxPool, AveragePool, LpPool and their global forms in NCHW, and MaxpoolWithMask of
// com.microsoft.
#include "ops/conv/pool.h"

#include <limits>

#include "kernels/conv/pool_planar.h"
#include "ops/conv/general_window.h"
#include "ops/conv/int8_pool.h"
#include "ops/conv/scalar_pool.h"
#include "ops/framework/op_row.h"

namespace tenon {

Result<SymbolicShape> PoolOutput(const WindowAttrs& attrs, bool ceil_mode, const SymbolicShape& x,
                                 size_t most) {
  if (x.rank() < 3) return InvalidArgument("input 0: expected [N, C, spatial...], got {}", x);
  if (attrs.kernel_shape.size() != x.rank() - 2) {
    return InvalidArgument("expected {} kernel sizes for input 0 {}, got {}", x.rank() - 2, x,
                           attrs.kernel_shape.size());
  }
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs, attrs.kernel_shape, most));
  SymbolicShape y = {x[0], x[1]};
  for (size_t i = 0; i < window.rank; ++i) {
    TENON_ASSIGN_OR_RETURN(Dim steps, WindowSteps(window, i, x[i + 2], ceil_mode));
    y.Append(std::move(steps));
  }
  return y;
}

namespace {

// LpPool-18; before version 2, p was a float.
template <class P>
struct LpPoolAttrs : WindowAttrs {
  bool ceil_mode = false;
  P p = 2;
  static constexpr auto Fields() {
    using A = LpPoolAttrs;
    return std::tuple_cat(WindowAttrs::Fields(),
                          std::tuple(Field("ceil_mode", &A::ceil_mode), Field("p", &A::p)));
  }
};

template <class P>
struct GlobalLpPoolAttrs {
  P p = 2;
  static constexpr auto Fields() { return std::tuple(Field("p", &GlobalLpPoolAttrs::p)); }
};

template <class Attrs>
Status InferPool(const Attrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, PoolOutput(attrs, attrs.ceil_mode, x, kMostWindowRank));
  if constexpr (std::is_same_v<Attrs, MaxPoolAttrs>) {
    TENON_RETURN_IF_ERROR(context.SetOutput(1, y, DataType::kInt64));
  }
  return context.SetOutput(0, std::move(y));
}

template <class Attrs>
Status InferGlobalPool(const Attrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, context.Input(0));
  if (y.rank() < 3) return InvalidArgument("input 0: expected [N, C, spatial...], got {}", y);
  if (y.rank() - 2 > kMostWindowRank) {
    return NotImplemented("{} spatial dimensions; at most {} are served", y.rank() - 2,
                          kMostWindowRank);
  }
  for (size_t i = 2; i < y.rank(); ++i) y[i] = Dim(1);
  return context.SetOutput(0, std::move(y));
}

template <class T>
Status RunScalarPool(KernelContext& context, const kernels::PoolPlanarArgs& args) {
  return context.ForEachTask(args.planes, 0, [&](size_t plane, std::byte*) {
    ScalarPoolPlane(args, context.Input(0).data<T>(), context.Output(0).data<T>(), plane);
  });
}

Status RunPlanes(KernelContext& context, kernels::PoolPlanarArgs& args) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  args.planes = static_cast<size_t>(x.shape()[0] * x.shape()[1]);
  if (x.type() == DataType::kDouble) return RunScalarPool<double>(context, args);
  if (x.type() != DataType::kFloat && args.indices == nullptr) {
    const Int8Quantization same = {x.type() == DataType::kInt8};
    return PoolBytes(args, same, same, context);
  }
  if (x.type() == DataType::kInt8) return RunScalarPool<int8_t>(context, args);
  if (x.type() == DataType::kUint8) return RunScalarPool<uint8_t>(context, args);
  args.in = x.data<float>();
  args.out = y.data<float>();
  return context.ForEachTask(kernels::PoolPlanarTaskCount(args), 0, [&](size_t task, std::byte*) {
    kernels::RunPoolPlanarTask(args, task);
  });
}

template <class T>
Status RunGeneralPlanes(KernelContext& context, const GeneralWindow& window,
                        const kernels::PoolPlanarArgs& args) {
  const Shape& x = context.Input(0).shape();
  return context.ForEachTask(static_cast<size_t>(x[0] * x[1]), 0, [&](size_t plane, std::byte*) {
    PoolGeneralPlane(window, args, context.Input(0).data<T>(), context.Output(0).data<T>(), plane);
  });
}

// Pools with more axes than the kernels support.
Status RunGeneral(KernelContext& context, const GeneralWindow& window,
                  const kernels::PoolPlanarArgs& args) {
  if (context.Output(0).size() == 0) return OkStatus();
  switch (context.Input(0).type()) {
    case DataType::kDouble:
      return RunGeneralPlanes<double>(context, window, args);
    case DataType::kInt8:
      return RunGeneralPlanes<int8_t>(context, window, args);
    case DataType::kUint8:
      return RunGeneralPlanes<uint8_t>(context, window, args);
    default:
      return RunGeneralPlanes<float>(context, window, args);
  }
}

Status FillDims(const WindowAttrs& attrs, KernelContext& context, kernels::PoolPlanarArgs& args) {
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs, attrs.kernel_shape));
  const Shape& x = context.Input(0).shape();
  const Shape& y = context.Output(0).shape();
  for (size_t i = 0; i < window.rank; ++i) {
    const WindowDim dim = PaddedDim(window, i, x[i + 2]);
    args.dims[kMaxWindowRank - window.rank + i] = {
        static_cast<size_t>(x[i + 2]),     static_cast<size_t>(y[i + 2]),
        static_cast<size_t>(dim.kernel),   static_cast<size_t>(dim.stride),
        static_cast<size_t>(dim.dilation), static_cast<size_t>(dim.pad_begin),
        static_cast<size_t>(dim.pad_end)};
  }
  return OkStatus();
}

Status RunWindows(const WindowAttrs& attrs, KernelContext& context, kernels::PoolPlanarArgs& args) {
  if (attrs.kernel_shape.size() > kMaxWindowRank) {
    TENON_ASSIGN_OR_RETURN(const Window window,
                           MakeWindow(attrs, attrs.kernel_shape, kMostWindowRank));
    return RunGeneral(
        context, GeneralWindow::Over(window, context.Input(0).shape(), context.Output(0).shape()),
        args);
  }
  TENON_RETURN_IF_ERROR(FillDims(attrs, context, args));
  return RunPlanes(context, args);
}

// One window over each whole plane.
Status RunWholePlanes(KernelContext& context, kernels::PoolPlanarArgs& args) {
  const Shape& x = context.Input(0).shape();
  if (x.rank() - 2 > kMaxWindowRank) {
    GeneralWindow window;
    window.rank = x.rank() - 2;
    for (size_t i = 0; i < window.rank; ++i) {
      window.dims[i].in = window.dims[i].kernel = static_cast<size_t>(x[i + 2]);
    }
    return RunGeneral(context, window, args);
  }
  for (size_t i = 2; i < x.rank(); ++i) {
    kernels::PoolDim& dim = args.dims[kMaxWindowRank - x.rank() + i];
    dim.in = dim.kernel = static_cast<size_t>(x[i]);
  }
  return RunPlanes(context, args);
}

Status RunMaxPool(const MaxPoolAttrs& attrs, KernelContext& context) {
  kernels::PoolPlanarArgs args = {.kind = kernels::PlanarPoolKind::kMax};
  if (context.HasOutput(1)) args.indices = context.Output(1).data<int64_t>();
  args.column_major_indices = attrs.storage_order;
  return RunWindows(attrs, context, args);
}

// MaxpoolWithMask-1: a row of a window ends where the mask has 0. The mask has one plane, or
// several that are used in turn. As in onnxruntime, the first element of a plane of rank 2 or 3
// always counts.
Status InferMaskedMaxPool(const MaxPoolAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, PoolOutput(attrs, false, x));
  const Result<SymbolicShape> mask = context.Input(1);
  if (!mask && !IsUnknownShape(mask.error())) return mask.error();
  bool fits = !mask || mask->rank() == x.rank();
  for (size_t i = 0; mask && fits && i < x.rank(); ++i) {
    const Dim& dim = (*mask)[i];
    fits = i < 2 ? !(dim == Dim(0)) : !dim.is_number() || !x[i].is_number() || dim == x[i];
  }
  if (!fits) return InvalidArgument("input 1: expected a mask for planes of {}, got {}", x, *mask);
  return context.SetOutput(0, std::move(y));
}

float MaskedMaximum(const kernels::PoolPlanarArgs& args, const float* in, const int32_t* mask,
                    bool counts_first, const size_t (&at)[kMaxWindowRank]) {
  const auto& [depth, height, width] = args.dims;
  // Outside the input if it is in the pads.
  const auto position = [](const kernels::PoolDim& dim, size_t out, size_t tap) {
    return out * dim.stride + tap * dim.dilation - dim.pad_begin;
  };
  float most = std::numeric_limits<float>::lowest();
  for (size_t d = 0; d < depth.kernel; ++d) {
    const size_t z = position(depth, at[0], d);
    for (size_t h = 0; h < height.kernel && z < depth.in; ++h) {
      const size_t y = position(height, at[1], h);
      for (size_t w = 0; w < width.kernel && y < height.in; ++w) {
        const size_t x = position(width, at[2], w);
        if (x >= width.in) continue;
        const size_t i = (z * height.in + y) * width.in + x;
        if (mask[i] == 0 && !(counts_first && i == 0)) break;
        if (in[i] > most) most = in[i];
      }
    }
  }
  return most;
}

Status RunMaskedMaxPool(const MaxPoolAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& mask = context.Input(1);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  kernels::PoolPlanarArgs args = {.kind = kernels::PlanarPoolKind::kMax};
  TENON_RETURN_IF_ERROR(FillDims(attrs, context, args));
  const auto planes = static_cast<size_t>(x.shape()[0] * x.shape()[1]);
  const size_t in = static_cast<size_t>(x.size()) / planes;
  const size_t out = static_cast<size_t>(y.size()) / planes;
  const size_t mask_planes = static_cast<size_t>(mask.shape()[0] * mask.shape()[1]);
  return context.ForEachTask(planes, 0, [&](size_t plane, std::byte*) {
    for (size_t i = 0; i < out; ++i) {
      const size_t at[] = {i / args.dims[2].out / args.dims[1].out,
                           i / args.dims[2].out % args.dims[1].out, i % args.dims[2].out};
      y.data<float>()[plane * out + i] =
          MaskedMaximum(args, x.data<float>() + plane * in,
                        mask.data<int32_t>() + plane % mask_planes * in, x.rank() > 3, at);
    }
  });
}

Status RunAveragePool(const AveragePoolAttrs& attrs, KernelContext& context) {
  kernels::PoolPlanarArgs args = {.kind = attrs.count_include_pad
                                              ? kernels::PlanarPoolKind::kAverageIncludingPads
                                              : kernels::PlanarPoolKind::kAverage};
  return RunWindows(attrs, context, args);
}

Status CheckNorm(double p) {
  return p > 0 ? OkStatus() : InvalidArgument("expected p > 0, got {}", p);
}

template <class P>
Status RunLpPool(const LpPoolAttrs<P>& attrs, KernelContext& context) {
  kernels::PoolPlanarArgs args = {.kind = kernels::PlanarPoolKind::kLp};
  args.p = static_cast<double>(attrs.p);
  TENON_RETURN_IF_ERROR(CheckNorm(args.p));
  return RunWindows(attrs, context, args);
}

template <kernels::PlanarPoolKind kKind>
Status RunGlobalPool(const NoAttrs&, KernelContext& context) {
  kernels::PoolPlanarArgs args = {.kind = kKind};
  return RunWholePlanes(context, args);
}

template <class P>
Status RunGlobalLpPool(const GlobalLpPoolAttrs<P>& attrs, KernelContext& context) {
  kernels::PoolPlanarArgs args = {.kind = kernels::PlanarPoolKind::kLp};
  args.p = static_cast<double>(attrs.p);
  TENON_RETURN_IF_ERROR(CheckNorm(args.p));
  return RunWholePlanes(context, args);
}

using kernels::PlanarPoolKind;

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};
constexpr TypeSet kBytes = {DataType::kInt8, DataType::kUint8};  // of MaxPool-12

constexpr OpRow kRows[] = {
    Op<InferPool<MaxPoolAttrs>, RunMaxPool>("MaxPool", {.types = kFloatAndDouble | kBytes}),
    Op<InferMaskedMaxPool, RunMaskedMaxPool>("MaxpoolWithMask",
                                             {.domain = "com.microsoft", .types = kFloat32Only}),
    Op<InferPool<AveragePoolAttrs>, RunAveragePool>("AveragePool", {.types = kFloatAndDouble}),
    Op<InferPool<LpPoolAttrs<float>>, RunLpPool<float>>("LpPool", {.types = kFloatAndDouble}),
    Op<InferPool<LpPoolAttrs<int64_t>>, RunLpPool<int64_t>>("LpPool",
                                                            {.since = 2, .types = kFloatAndDouble}),
    Op<InferGlobalPool<NoAttrs>, RunGlobalPool<PlanarPoolKind::kMax>>("GlobalMaxPool",
                                                                      {.types = kFloatAndDouble}),
    Op<InferGlobalPool<NoAttrs>, RunGlobalPool<PlanarPoolKind::kAverage>>(
        "GlobalAveragePool", {.types = kFloatAndDouble}),
    Op<InferGlobalPool<GlobalLpPoolAttrs<float>>, RunGlobalLpPool<float>>(
        "GlobalLpPool", {.types = kFloatAndDouble}),
    Op<InferGlobalPool<GlobalLpPoolAttrs<int64_t>>, RunGlobalLpPool<int64_t>>(
        "GlobalLpPool", {.since = 2, .types = kFloatAndDouble}),
};

}  // namespace

TENON_OP_FAMILY(Pool, kRows);

}  // namespace tenon
