// Conv and FusedConv in NCHW.
#include "kernels/conv/conv_general.h"
#include "ops/conv/conv_shapes.h"
#include "ops/conv/conv_work.h"
#include "ops/conv/general_window.h"
#include "ops/conv/scalar_conv.h"
#include "ops/framework/float_rows.h"
#include "ops/framework/fused_activation.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/framework/widen_narrow.h"
#include "tensor/lasting_memory.h"

namespace tenon {
namespace {

Status InferConv(const ConvAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, ConvOutput(attrs, x, context, kMostWindowRank));
  TENON_RETURN_IF_ERROR(CheckConvResidual(context, y));
  return context.SetOutput(0, std::move(y));
}

// A convolution with more axes than the kernels support. T: float or double.
template <class T>
Status RunGeneralConv(const ConvAttrs& attrs, const kernels::ActivationSpec& activation,
                      KernelContext& context) {
  const Tensor& x = context.Input(0);
  const Tensor& w = context.Input(1);
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const Window window,
                         MakeWindow(attrs, w.shape().dims().subspan(2), kMostWindowRank));
  const GeneralWindow general = GeneralWindow::Over(window, x.shape(), y.shape());
  const auto channels = static_cast<size_t>(y.shape()[1]);
  const auto depth = static_cast<size_t>(w.shape()[1]);  // of one group
  const size_t group_channels = channels / static_cast<size_t>(attrs.group);
  const size_t in = general.input_size(), out = general.output_size();
  const size_t taps = general.kernel_size();
  const T* bias = context.HasInput(2) ? context.Input(2).data<T>() : nullptr;
  const T* residual = context.HasInput(3) ? context.Input(3).data<T>() : nullptr;
  const auto planes = static_cast<size_t>(y.shape()[0]) * channels;
  return context.ForEachTask(planes, 0, [&](size_t plane, std::byte*) {
    const size_t image = plane / channels, channel = plane % channels;
    const size_t first =
        image * static_cast<size_t>(x.shape()[1]) + channel / group_channels * depth;
    const T* from = x.data<T>() + first * in;
    const T* weights = w.data<T>() + channel * depth * taps;
    for (size_t i = plane * out; i < (plane + 1) * out; ++i) {
      double sum = bias ? bias[channel] : 0;
      general.ForEachTap(i - plane * out, [&](const GeneralWindow::Tap& tap) {
        for (size_t c = 0; tap.is_inside && c < depth; ++c) {
          sum += static_cast<double>(from[c * in + tap.offset]) * weights[c * taps + tap.index];
        }
      });
      if (residual) sum += residual[i];
      y.data<T>()[i] = static_cast<T>(sum);
    }
    Activate(activation, y.data<T>() + plane * out, out);
  });
}

class PreparedConv : public StatefulKernel<InferConv> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(activation_,
                           FusedActivation(attrs_.activation, attrs_.activation_params));
    may_round_ = info.node().GetInt(kFromBfloat16, 0) != 0 ||
                 info.weights().precision == MatmulPrecision::kMedium;
    const Tensor* weights = info.StoredConstant(1);
    if (weights == nullptr || weights->type() != DataType::kFloat16) return OkStatus();
    TENON_ASSIGN_OR_RETURN(
        widened_, Tensor::Allocate(DataType::kFloat, weights->shape(), SharedLastingMemory()));
    CopyFloatRow(*weights, 0, static_cast<size_t>(weights->size()), widened_.data<float>());
    info.ReleaseConstant(1);
    return OkStatus();
  }

 protected:
  const Tensor& Weights(const KernelContext& context) const {
    return widened_.defined() ? widened_ : context.Input(1);
  }

  kernels::ActivationSpec activation_;
  bool may_round_ = false;  // what is multiplied, to bfloat16

 private:
  Tensor widened_;  // weights that are stored as float16 numbers
};

class Conv final : public PreparedConv {
 public:
  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    const Tensor& w = Weights(context);
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    if (x.rank() > kMaxWindowRank + 2) return RunGeneralConv<float>(attrs_, activation_, context);
    TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs_, w.shape().dims().subspan(2)));
    kernels::ConvGeneralArgs args = {GeneralConvShape(window, x.shape(), y.shape(), attrs_.group),
                                     x.data<float>(),
                                     w.data<float>(),
                                     y.data<float>(),
                                     {}};
    if (context.HasInput(2)) args.epilogue.bias = context.Input(2).data<float>();
    if (context.HasInput(3)) args.epilogue.residual = context.Input(3).data<float>();
    args.epilogue.activation = activation_;
    return ConvWork::OfConv(args, may_round_).Run(context);
  }
};

class DoubleConv final : public PreparedConv {
 public:
  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    const Tensor& w = context.Input(1);
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    if (x.rank() > kMaxWindowRank + 2) return RunGeneralConv<double>(attrs_, activation_, context);
    TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs_, w.shape().dims().subspan(2)));
    const ScalarConvArgs args = {GeneralConvShape(window, x.shape(), y.shape(), attrs_.group),
                                 x.data<double>(), w.data<double>(),
                                 context.HasInput(2) ? context.Input(2).data<double>() : nullptr,
                                 y.data<double>()};
    const double* residual = context.HasInput(3) ? context.Input(3).data<double>() : nullptr;
    const kernels::ConvGeneralShape& s = args.shape;
    const size_t size = OutputSize(s.dims), channels = s.out_channels / s.groups;
    const size_t blocks = kernels::CeilDiv(size, kScalarConvPixels);
    return context.ForEachTask(
        s.batch * s.groups * blocks, ScalarConvScratch(s) * sizeof(double),
        [&](size_t task, std::byte* scratch) {
          const size_t stack = task / blocks, first = task % blocks * kScalarConvPixels;
          const size_t n = std::min(kScalarConvPixels, size - first);
          const double* sums =
              ScalarConvPixels(args, stack, first, n, reinterpret_cast<double*>(scratch));
          for (size_t c = 0; c < channels; ++c) {
            const size_t at = (stack * channels + c) * size + first;
            const double bias = args.bias ? args.bias[stack % s.groups * channels + c] : 0;
            for (size_t i = 0; i < n; ++i) {
              args.out[at + i] = *sums++ + bias + (residual ? residual[at + i] : 0);
            }
            Activate(activation_, args.out + at, n);
          }
        });
  }
};

constexpr OpRow kRows[] = {
    OpClass<Conv>("Conv", {.types = kFloat32Only, .half_constants = 1 << 1}),
    OpClass<DoubleConv>("Conv", {.types = {DataType::kDouble}}),
    OpClass<Conv>("FusedConv",
                  {.domain = "com.microsoft", .types = kFloat32Only, .half_constants = 1 << 1}),
    OpClass<DoubleConv>("FusedConv", {.domain = "com.microsoft", .types = {DataType::kDouble}}),
};

}  // namespace

TENON_OP_FAMILY(Conv, kRows);

}  // namespace tenon
