// DropoutGrad of com.microsoft: where the mask is true, dY / (1 - ratio), and elsewhere 0.
#include <algorithm>

#include "kernels/elementwise/elementwise.h"
#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

enum Input : size_t { kDy, kMask, kRatio };

Status InferDropoutGradient(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape dy, context.Input(kDy));
  TENON_RETURN_IF_ERROR(CheckInputShape(context, kMask, dy));
  if (context.HasInput(kRatio)) {
    TENON_RETURN_IF_ERROR(CheckElementCount(context, kRatio, Dim(1)));
  }
  return context.SetOutput(0, std::move(dy));
}

Status RunDropoutGradient(const NoAttrs&, KernelContext& context) {
  double ratio = 0.5;
  if (context.HasInput(kRatio)) {
    const Tensor& given = context.Input(kRatio);
    ratio = VisitNumber(given.type(), [&](auto number) {
      return static_cast<double>(Widen(*given.data<decltype(number)>()));
    });
  }
  if (!(ratio >= 0 && ratio < 1)) {
    return InvalidArgument("input 2: expected a ratio in [0, 1), got {}", ratio);
  }
  const auto scale = static_cast<float>(1 / (1 - ratio));
  const float* dy = context.Input(kDy).data<float>();
  const auto* mask = static_cast<const uint8_t*>(context.Input(kMask).raw());
  float* dx = context.Output(0).data<float>();
  const auto multiply =
      kernels::FindBinary(kernels::BinaryOp::kMul, kernels::ElementType::kFloat).vector_scalar;
  constexpr float kZero = 0;
  constexpr size_t kGrain = 8192;  // the products are still in L1 when some become 0
  context.threads().ParallelFor(static_cast<size_t>(context.Output(0).size()), kGrain,
                                [&](size_t begin, size_t end) {
                                  for (size_t i = begin; i < end; i += kGrain) {
                                    const size_t n = std::min(kGrain, end - i);
                                    multiply(dy + i, &scale, dx + i, n);
                                    kernels::Where(mask + i, dx + i, &kZero, dx + i, n,
                                                   sizeof(float), {.condition = 1, .a = 1, .b = 0});
                                  }
                                });
  return OkStatus();
}

constexpr OpRow kRows[] = {
    Op<InferDropoutGradient, RunDropoutGradient>(
        "DropoutGrad",
        {.domain = "com.microsoft", .types = kFloat32Only, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(DropoutGradient, kRows);

}  // namespace tenon
