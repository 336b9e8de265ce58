// MaxPool, AveragePool, LpPool and their global forms in the plain layout.
#include "ops/pool.h"

#include "kernels/pool_planar.h"
#include "ops/families.h"
#include "ops/pool_plain.h"

namespace tenon {

Result<SymbolicShape> PoolOutput(const WindowAttrs& attrs, bool ceil_mode, const SymbolicShape& x) {
  if (x.rank() < 3) return InvalidArgument("input 0: expected [N, C, spatial...], got {}", x);
  if (attrs.kernel_shape.size() != x.rank() - 2) {
    return InvalidArgument("expected {} kernel sizes for input 0 {}, got {}", x.rank() - 2, x,
                           attrs.kernel_shape.size());
  }
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs, attrs.kernel_shape));
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
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, PoolOutput(attrs, attrs.ceil_mode, x));
  if constexpr (std::is_same_v<Attrs, MaxPoolAttrs>) {
    TENON_RETURN_IF_ERROR(context.SetOutput(1, y, DataType::kInt64));
  }
  return context.SetOutput(0, std::move(y));
}

template <class Attrs>
Status InferGlobalPool(const Attrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, context.Input(0));
  if (y.rank() < 3) return InvalidArgument("input 0: expected [N, C, spatial...], got {}", y);
  if (y.rank() - 2 > kMaxWindowRank) {
    return NotImplemented("{} spatial dimensions; at most {} are served", y.rank() - 2,
                          kMaxWindowRank);
  }
  for (size_t i = 2; i < y.rank(); ++i) y[i] = Dim(1);
  return context.SetOutput(0, std::move(y));
}

template <class T>
Status RunPlain(KernelContext& context, const kernels::PoolPlanarArgs& args) {
  return context.ForEachTask(args.planes, 0, [&](size_t plane, std::byte*) {
    PoolPlainPlane(args, context.Input(0).data<T>(), context.Output(0).data<T>(), plane);
  });
}

Status RunPlanes(KernelContext& context, kernels::PoolPlanarArgs& args) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  args.planes = static_cast<size_t>(x.shape()[0] * x.shape()[1]);
  if (x.type() == DataType::kDouble) return RunPlain<double>(context, args);
  if (x.type() == DataType::kInt8) return RunPlain<int8_t>(context, args);
  if (x.type() == DataType::kUint8) return RunPlain<uint8_t>(context, args);
  args.in = x.data<float>();
  args.out = y.data<float>();
  return context.ForEachTask(kernels::PoolPlanarTaskCount(args), 0, [&](size_t task, std::byte*) {
    kernels::RunPoolPlanarTask(args, task);
  });
}

Status RunWindows(const WindowAttrs& attrs, KernelContext& context, kernels::PoolPlanarArgs& args) {
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
  return RunPlanes(context, args);
}

// One window over each whole plane.
Status RunWholePlanes(KernelContext& context, kernels::PoolPlanarArgs& args) {
  const Shape& x = context.Input(0).shape();
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

const std::span<const OpRow> kPoolFamily = kRows;

}  // namespace tenon
