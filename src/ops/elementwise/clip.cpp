// Clip.
#include <array>
#include <limits>
#include <span>

#include "kernels/elementwise/elementwise.h"
#include "ops/framework/element_type.h"
#include "ops/framework/op_row.h"
#include "ops/framework/run_broadcast.h"

namespace tenon {
namespace {

using kernels::BinaryOp;

// Clip-11 takes the bounds as inputs. Before, they are attributes; see unary.cpp.
Status InferClip(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

void Clip(const float* x, float* y, size_t n, float low, float high) {
  kernels::FindUnary(UnaryOp::kClip)(x, y, n, low, high);
}
void Clip(const double* x, double* y, size_t n, double low, double high) {
  kernels::ApplyInDouble(UnaryOp::kClip, x, y, n, low, high);
}

template <class T>
Status ClipFloats(KernelContext& context) {
  constexpr T kInf = std::numeric_limits<T>::infinity();
  const T low = context.HasInput(1) ? *context.Input(1).data<T>() : -kInf;
  const T high = context.HasInput(2) ? *context.Input(2).data<T>() : kInf;
  const T* x = context.Input(0).data<T>();
  T* y = context.Output(0).data<T>();
  context.threads().ParallelFor(
      static_cast<size_t>(context.Input(0).size()), kernels::ElementwiseGrain(UnaryOp::kClip),
      [&](size_t begin, size_t end) { Clip(x + begin, y + begin, end - begin, low, high); });
  return OkStatus();
}

Status RunClip(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(0);
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType type, ElementTypeOf(x.type()));
  // In this order a lower bound above the upper one gives the upper one, as the standard says.
  const BinaryOp ops[] = {BinaryOp::kMax, BinaryOp::kMin};
  std::array<ScalarStep, 2> steps;
  size_t count = 0;
  for (size_t i = 0; i < 2; ++i) {
    if (!context.HasInput(i + 1)) continue;
    const Tensor& bound = context.Input(i + 1);
    if (bound.size() != 1) {
      return InvalidArgument("input {}: expected a scalar, got shape {}", i + 1, bound.shape());
    }
    steps[count++] = {kernels::FindBinary(ops[i], type).vector_scalar, bound.raw()};
  }
  if (x.type() == DataType::kFloat) return ClipFloats<float>(context);
  if (x.type() == DataType::kDouble) return ClipFloats<double>(context);
  RunScalarSteps(context, std::span(steps).first(count), x, context.Output(0));
  return OkStatus();
}

constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};

constexpr OpRow kRows[] = {
    Op<InferClip, RunClip>(
        "Clip", {.since = 11, .types = kInts | kFloatAndDouble, .traits = {.in_place_input = 0}}),
};

}  // namespace

TENON_OP_FAMILY(Clip, kRows);

}  // namespace tenon
