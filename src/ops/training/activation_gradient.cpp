// Gradients of element-wise activations, of com.microsoft.
#include "kernels/elementwise/activation_gradient.h"

#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

using kernels::GradientOp;

struct AlphaAttrs {
  float alpha = 0;
  static constexpr auto Fields() { return std::tuple(Field("alpha", &AlphaAttrs::alpha)); }
};

template <class Attrs>
Status InferGradient(const Attrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape dy, context.Input(0));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, 1, dy));
  return context.SetOutput(0, std::move(dy));
}

Status RunGradient(GradientOp op, float alpha, KernelContext& context) {
  const float* dy = context.Input(0).data<float>();
  const float* x = context.Input(1).data<float>();
  Tensor& dx = context.Output(0);
  float* to = dx.data<float>();
  constexpr size_t kGrain = 8192;
  context.threads().ParallelFor(
      static_cast<size_t>(dx.size()), kGrain, [&](size_t begin, size_t end) {
        kernels::ActivationGradient(op, dy + begin, x + begin, to + begin, end - begin, alpha);
      });
  return OkStatus();
}

template <GradientOp op, class Attrs>
Status RunGradientOf(const Attrs& attrs, KernelContext& context) {
  if constexpr (std::is_same_v<Attrs, AlphaAttrs>) return RunGradient(op, attrs.alpha, context);
  return RunGradient(op, 0, context);
}

template <GradientOp op, class Attrs = NoAttrs>
constexpr OpRow Row(std::string_view name) {
  return Op<InferGradient<Attrs>, RunGradientOf<op, Attrs>>(
      name, {.domain = "com.microsoft",
             .types = kFloat32Only,
             .traits = {.in_place_input = 0, .in_place_also = 1}});
}

constexpr OpRow kRows[] = {
    Row<GradientOp::kRelu>("ReluGrad"),
    Row<GradientOp::kSigmoid>("SigmoidGrad"),
    Row<GradientOp::kTanh>("TanhGrad"),
    Row<GradientOp::kGelu>("GeluGrad"),
    Row<GradientOp::kGeluTanh>("FastGeluGrad"),
    Row<GradientOp::kQuickGelu, AlphaAttrs>("QuickGeluGrad"),
    Row<GradientOp::kLeakyRelu, AlphaAttrs>("LeakyReluGrad"),
};

}  // namespace

TENON_OP_FAMILY(ActivationGradient, kRows);

}  // namespace tenon
