// ConvGrad of com.microsoft: the gradients of Conv in NCHW.
#include "kernels/conv/conv_general.h"
#include "kernels/conv/conv_weight_gradient.h"
#include "kernels/reduce.h"
#include "ops/conv/conv_shapes.h"
#include "ops/conv/conv_work.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/framework/widen_narrow.h"

namespace tenon {
namespace {

enum Input : size_t { kDy, kX, kW };
enum Output : size_t { kDx, kDw, kDb };

Status InferConvGradient(const ConvAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(kX));
  TENON_ASSIGN_OR_RETURN(SymbolicShape w, context.InputOfRank(kW, x.rank()));
  if (x.rank() < 3) return InvalidArgument("input 1: expected [N, C, spatial...], got {}", x);
  TENON_RETURN_IF_ERROR(CheckGroup(attrs.group, w[0], kW));
  if (!MayEqual(x[1], w[1] * Dim(attrs.group))) {
    return InvalidArgument(
        "input 1: expected {} channels for the weights {} and group = {}, got {}",
        w[1] * Dim(attrs.group), w, attrs.group, x);
  }
  TENON_ASSIGN_OR_RETURN(const SymbolicShape y, ConvOutput(attrs, x, w));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kDy, y));
  TENON_RETURN_IF_ERROR(context.SetOutput(kDb, {w[0]}));
  TENON_RETURN_IF_ERROR(context.SetOutput(kDw, std::move(w)));
  return context.SetOutput(kDx, std::move(x));
}

// dX, the transposed convolution of dY.
ConvWork InputGradient(const kernels::ConvGeneralShape& shape, bool may_round,
                       KernelContext& context) {
  return ConvWork::OfTranspose({TransposedShape(shape),
                                context.Input(kDy).data<float>(),
                                context.Input(kW).data<float>(),
                                context.Output(kDx).data<float>(),
                                {}},
                               may_round);
}

ConvWork WeightGradient(const kernels::ConvGeneralShape& shape, bool may_round,
                        KernelContext& context) {
  return ConvWork::OfWeightGradient(
      {shape, context.Input(kX).data<float>(), context.Input(kDy).data<float>(),
       context.Output(kDw).data<float>()},
      may_round);
}

// The sums of the channels of dY.
Status RunBiasGradient(KernelContext& context) {
  const Tensor& dy = context.Input(kDy);
  const Shape& shape = dy.shape();
  const size_t sizes[] = {static_cast<size_t>(shape[0]), static_cast<size_t>(shape[1]),
                          static_cast<size_t>(shape.Product(2, shape.rank()))};
  const bool reduced[] = {true, false, true};
  TENON_ASSIGN_OR_RETURN(const kernels::ReducePlan plan, kernels::MakeReducePlan(sizes, reduced));
  void* const db = context.Output(kDb).raw();
  context.threads().ParallelFor(plan.units, plan.grain, [&](size_t begin, size_t end) {
    kernels::RunReduce(plan, kernels::ReduceOp::kSum, kernels::ElementType::kFloat, dy.raw(), db,
                       begin, end);
  });
  return OkStatus();
}

class ConvGradient final : public StatefulKernel<InferConvGradient> {
 public:
  Status Prepare(KernelInfo& info) {
    may_round_ = info.node().GetInt(kFromBfloat16, 0) != 0;
    return Bind(info);
  }

  Status Run(KernelContext& context) const override;

 private:
  bool may_round_ = false;
};

Status ConvGradient::Run(KernelContext& context) const {
  const Shape& x = context.Input(kX).shape();
  const Shape& w = context.Input(kW).shape();
  const Tensor& dy = context.Input(kDy);
  if (dy.size() == 0) {
    for (size_t i = kDx; i <= kDb; ++i) {
      if (!context.HasOutput(i)) continue;
      Tensor& gradient = context.Output(i);
      std::fill_n(gradient.data<float>(), gradient.size(), 0.0f);
    }
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(const Window window, MakeWindow(attrs_, w.dims().subspan(2)));
  const kernels::ConvGeneralShape shape = GeneralConvShape(window, x, dy.shape(), attrs_.group);
  std::optional<ConvWork> dx, dw;
  if (context.HasOutput(kDx)) dx = InputGradient(shape, may_round_, context);
  if (context.HasOutput(kDw)) dw = WeightGradient(shape, may_round_, context);
  const size_t bytes =
      std::max(dx ? dx->ScratchBytes(context) : 0, dw ? dw->ScratchBytes(context) : 0);
  auto* const scratch = static_cast<std::byte*>(context.Scratch(bytes));
  if (scratch == nullptr) return RuntimeException("out of memory: {} bytes of scratch", bytes);
  if (dx) dx->RunIn(scratch, context);
  if (dw) dw->RunIn(scratch, context);
  return context.HasOutput(kDb) ? RunBiasGradient(context) : OkStatus();
}

constexpr OpRow kRows[] = {
    OpClass<ConvGradient>("ConvGrad", {.domain = "com.microsoft", .types = kFloat32Only}),
};

}  // namespace

TENON_OP_FAMILY(ConvGradient, kRows);

}  // namespace tenon
