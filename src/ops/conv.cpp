// Conv and FusedConv in the plain layout.
#include "kernels/conv_general.h"
#include "ops/conv_shapes.h"
#include "ops/families.h"
#include "ops/fused_activation.h"
#include "ops/plain_conv.h"

namespace tenon {
namespace {

Status InferConv(const ConvAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, ConvOutput(attrs, x, context));
  TENON_RETURN_IF_ERROR(CheckConvResidual(context, y));
  return context.SetOutput(0, std::move(y));
}

class Conv final : public StatefulKernel<InferConv> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(activation_,
                           FusedActivation(attrs_.activation, attrs_.activation_params));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    const Tensor& w = context.Input(1);
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs_, w.shape().dims().subspan(2)));
    kernels::ConvGeneralArgs args = {GeneralConvShape(window, x.shape(), y.shape(), attrs_.group),
                                     x.data<float>(),
                                     w.data<float>(),
                                     y.data<float>(),
                                     {}};
    if (context.HasInput(2)) args.epilogue.bias = context.Input(2).data<float>();
    if (context.HasInput(3)) args.epilogue.residual = context.Input(3).data<float>();
    args.epilogue.activation = activation_;
    return context.ForEachTask(
        kernels::ConvGeneralTaskCount(args.shape), kernels::ConvGeneralScratchSize(args.shape),
        [&](size_t task, std::byte* scratch) { RunConvGeneralTask(args, task, scratch); });
  }

 private:
  kernels::ActivationSpec activation_;
};

Status RunDoubleConv(const ConvAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& w = context.Input(1);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs, w.shape().dims().subspan(2)));
  const PlainConvArgs args = {GeneralConvShape(window, x.shape(), y.shape(), attrs.group),
                              x.data<double>(), w.data<double>(),
                              context.HasInput(2) ? context.Input(2).data<double>() : nullptr,
                              y.data<double>()};
  const size_t planes = args.shape.batch * args.shape.out_channels;
  return context.ForEachTask(planes, 0,
                             [&](size_t plane, std::byte*) { PlainConvPlane(args, plane); });
}

constexpr OpRow kRows[] = {
    OpClass<Conv>("Conv", {.types = kFloat32Only}),
    Op<InferConv, RunDoubleConv>("Conv", {.types = {DataType::kDouble}}),
    OpClass<Conv>("FusedConv", {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

const std::span<const OpRow> kConvFamily = kRows;

}  // namespace tenon
