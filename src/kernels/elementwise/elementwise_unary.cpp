#include "kernels/elementwise/elementwise.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/elementwise_unary.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"
#include "kernels/elementwise/unary_functors-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_ELEMENTWISE_UNARY_ONCE
#define TENON_KERNELS_ELEMENTWISE_UNARY_ONCE
namespace tenon::kernels {
struct UnaryTable {
  UnaryFunction functions[kUnaryOpCount];
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

template <class Functor>
void MapUnary(const float* x, float* y, size_t n, float a, float b) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto va = hn::Set(d, a);
  const auto vb = hn::Set(d, b);
  const Functor functor;
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(functor(d, hn::LoadU(d, x + i), va, vb), d, y + i);
  }
  if (i < n) {
    StorePartial(functor(d, LoadPartial(d, x + i, n - i), va, vb), d, y + i, n - i);
  }
}

// In the order of UnaryOp.
const UnaryTable kUnaryTable = {{
    &MapUnary<AbsFunctor>,      &MapUnary<NegFunctor>,         &MapUnary<SignFunctor>,
    &MapUnary<FloorFunctor>,    &MapUnary<CeilFunctor>,        &MapUnary<RoundFunctor>,
    &MapUnary<SqrtFunctor>,     &MapUnary<SquareFunctor>,      &MapUnary<ReciprocalFunctor>,
    &MapUnary<RsqrtFunctor>,    &MapUnary<ExpFunctor>,         &MapUnary<Expm1Functor>,
    &MapUnary<LogFunctor>,      &MapUnary<Log1pFunctor>,       &MapUnary<ErfFunctor>,
    &MapUnary<SinFunctor>,      &MapUnary<CosFunctor>,         &MapUnary<TanFunctor>,
    &MapUnary<AsinFunctor>,     &MapUnary<AcosFunctor>,        &MapUnary<AtanFunctor>,
    &MapUnary<SinhFunctor>,     &MapUnary<CoshFunctor>,        &MapUnary<TanhFunctor>,
    &MapUnary<AsinhFunctor>,    &MapUnary<AcoshFunctor>,       &MapUnary<AtanhFunctor>,
    &MapUnary<SigmoidFunctor>,  &MapUnary<HardSigmoidFunctor>, &MapUnary<HardSwishFunctor>,
    &MapUnary<ReluFunctor>,     &MapUnary<LeakyReluFunctor>,   &MapUnary<ThresholdedReluFunctor>,
    &MapUnary<EluFunctor>,      &MapUnary<SeluFunctor>,        &MapUnary<CeluFunctor>,
    &MapUnary<SoftplusFunctor>, &MapUnary<SoftsignFunctor>,    &MapUnary<GeluFunctor>,
    &MapUnary<GeluTanhFunctor>, &MapUnary<SiluFunctor>,        &MapUnary<SwishFunctor>,
    &MapUnary<MishFunctor>,     &MapUnary<ClipFunctor>,
}};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

UnaryFunction FindUnary(UnaryOp op) {
  return TENON_SELECT_TABLE(UnaryTable, kUnaryTable).functions[static_cast<size_t>(op)];
}

size_t ElementwiseGrain(UnaryOp op) {
  switch (op) {
    case UnaryOp::kAbs:
    case UnaryOp::kNeg:
    case UnaryOp::kSign:
    case UnaryOp::kFloor:
    case UnaryOp::kCeil:
    case UnaryOp::kRound:
    case UnaryOp::kSquare:
    case UnaryOp::kRelu:
    case UnaryOp::kLeakyRelu:
    case UnaryOp::kThresholdedRelu:
    case UnaryOp::kHardSigmoid:
    case UnaryOp::kHardSwish:
    case UnaryOp::kClip:
      return 32768;  // 256 KiB in and out, about 3 us
    default:
      return 8192;
  }
}

}  // namespace tenon::kernels
#endif
