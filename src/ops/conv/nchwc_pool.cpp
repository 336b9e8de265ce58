// Pools and changes of layout in the blocked layout.
#include "kernels/conv/pool_blocked.h"
#include "kernels/conv/reorder.h"
#include "ops/conv/nchwc.h"
#include "ops/conv/pool.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// Adds `channels`, which cannot be seen from the blocked shape.
template <class Base>
struct WithChannels : Base {
  int64_t channels = 0;
  static constexpr auto Fields() {
    return std::tuple_cat(Base::Fields(), std::tuple(Field("channels", &WithChannels::channels)));
  }
};
using ChannelsAttrs = WithChannels<NoAttrs>;

Result<SymbolicShape> NchwInput(int64_t channels, const ShapeContext& context) {
  if (channels < 0) return InvalidArgument("expected channels >= 0, got {}", channels);
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  return NchwShape(x, Dim(channels));
}

template <class Attrs>
Status InferPool(const WithChannels<Attrs>& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, NchwInput(attrs.channels, context));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape y, PoolOutput(attrs, attrs.ceil_mode, x));
  return context.SetOutput(0, BlockedShape(y));
}

Status InferGlobalPool(const ChannelsAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, NchwInput(attrs.channels, context));
  return context.SetOutput(0, BlockedShape({x[0], x[1], Dim(1), Dim(1)}));
}

Status RunPool(KernelContext& context, kernels::PoolBlockedArgs& args) {
  if (context.Output(0).size() == 0) return OkStatus();
  args.in = context.Input(0).data<float>();
  args.out = context.Output(0).data<float>();
  return context.ForEachTask(
      kernels::PoolBlockedTaskCount(args.shape), 0,
      [&](size_t task, std::byte*) { kernels::RunPoolBlockedTask(args, task); });
}

Status RunWindows(const WindowAttrs& attrs, int64_t channels, kernels::PoolKind kind,
                  KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs, attrs.kernel_shape));
  const Shape& x = context.Input(0).shape();
  const Shape& y = context.Output(0).shape();
  kernels::PoolBlockedArgs args;
  args.kind = kind;
  args.shape = WindowShape2d(window, Shape({x[0], channels, x[2], x[3]}),
                             Shape({y[0], channels, y[2], y[3]}));
  args.pad_bottom = static_cast<size_t>(PaddedDim(window, 0, x[2]).pad_end);
  args.pad_right = static_cast<size_t>(PaddedDim(window, 1, x[3]).pad_end);
  return RunPool(context, args);
}

Status RunMaxPool(const WithChannels<MaxPoolAttrs>& attrs, KernelContext& context) {
  return RunWindows(attrs, attrs.channels, kernels::PoolKind::kMax, context);
}

Status RunAveragePool(const WithChannels<AveragePoolAttrs>& attrs, KernelContext& context) {
  return RunWindows(attrs, attrs.channels,
                    attrs.count_include_pad ? kernels::PoolKind::kAverageIncludingPads
                                            : kernels::PoolKind::kAverage,
                    context);
}

Status RunGlobalAveragePool(const ChannelsAttrs& attrs, KernelContext& context) {
  const Shape& x = context.Input(0).shape();
  kernels::PoolBlockedArgs args;
  args.kind = kernels::PoolKind::kAverage;
  args.shape.batch = static_cast<size_t>(x[0]);
  args.shape.in_channels = args.shape.out_channels = static_cast<size_t>(attrs.channels);
  args.shape.in_height = args.shape.kernel_height = static_cast<size_t>(x[2]);
  args.shape.in_width = args.shape.kernel_width = static_cast<size_t>(x[3]);
  args.shape.out_height = args.shape.out_width = 1;
  return RunPool(context, args);
}

Status InferReorderInput(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.InputOfRank(0, 4));
  return context.SetOutput(0, BlockedShape(x));
}

Status InferReorderOutput(const ChannelsAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, NchwInput(attrs.channels, context));
  return context.SetOutput(0, std::move(x));
}

// `nchw` is the input's or the output's NCHW shape.
Status Reorder(KernelContext& context, const Shape& nchw,
               void (*run)(const kernels::ReorderArgs& args, size_t task)) {
  if (context.Output(0).size() == 0) return OkStatus();
  const kernels::ReorderArgs args = {static_cast<size_t>(nchw[0]), static_cast<size_t>(nchw[1]),
                                     static_cast<size_t>(nchw[2] * nchw[3]),
                                     context.Input(0).data<float>(),
                                     context.Output(0).data<float>()};
  return context.ForEachTask(kernels::ReorderTaskCount(args), 0,
                             [&](size_t task, std::byte*) { run(args, task); });
}

Status RunReorderInput(const NoAttrs&, KernelContext& context) {
  return Reorder(context, context.Input(0).shape(), kernels::RunReorderToBlockedTask);
}

Status RunReorderOutput(const ChannelsAttrs&, KernelContext& context) {
  return Reorder(context, context.Output(0).shape(), kernels::RunReorderToPlanarTask);
}

constexpr OpOptions kOptions = {.domain = kNchwcDomain, .types = kFloat32Only};

constexpr OpRow kRows[] = {
    Op<InferPool<MaxPoolAttrs>, RunMaxPool>("NchwcMaxPool", kOptions),
    Op<InferPool<AveragePoolAttrs>, RunAveragePool>("NchwcAveragePool", kOptions),
    Op<InferGlobalPool, RunGlobalAveragePool>("NchwcGlobalAveragePool", kOptions),
    Op<InferReorderInput, RunReorderInput>("NchwcReorderInput", kOptions),
    Op<InferReorderOutput, RunReorderOutput>("NchwcReorderOutput", kOptions),
};

}  // namespace

TENON_OP_FAMILY(NchwcPool, kRows);

}  // namespace tenon
