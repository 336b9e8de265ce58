#include "kernels/elementwise/activation_gradient.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/elementwise/activation_gradient.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"
#include "kernels/elementwise/unary_functors-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_KERNELS_ACTIVATION_GRADIENT_CPP_
#define TENON_KERNELS_ACTIVATION_GRADIENT_CPP_
namespace tenon::kernels {

struct ActivationGradientTable {
  decltype(&ActivationGradient) gradient;
};

}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;
using Tag = hn::ScalableTag<float>;
using V = hn::Vec<Tag>;

HWY_INLINE V Number(float value) { return hn::Set(Tag(), value); }

// The derivative of x sigmoid(t(x)): s + x s (1 - s) t'(x).
HWY_INLINE V GatedDerivative(V x, V t, V slope) {
  const V one = Number(1.0f);
  const V s = SigmoidFunctor()(Tag(), t, one, one);
  return hn::MulAdd(hn::Mul(hn::Mul(x, slope), s), hn::Sub(one, s), s);
}

// One struct for each GradientOp: dx of vectors dy and x.
struct ReluGradient {
  HWY_INLINE V operator()(V dy, V x, V) const {
    return hn::IfThenElseZero(hn::Gt(x, hn::Zero(Tag())), dy);
  }
};
struct LeakyReluGradient {
  HWY_INLINE V operator()(V dy, V y, V alpha) const {
    return hn::IfThenElse(hn::Gt(y, hn::Zero(Tag())), dy, hn::Mul(dy, alpha));
  }
};
struct SigmoidGradient {
  HWY_INLINE V operator()(V dy, V y, V) const {
    return hn::Mul(dy, hn::Mul(y, hn::Sub(Number(1.0f), y)));
  }
};
struct TanhGradient {
  HWY_INLINE V operator()(V dy, V y, V) const {
    return hn::Mul(dy, hn::NegMulAdd(y, y, Number(1.0f)));
  }
};
struct GeluGradient {
  HWY_INLINE V operator()(V dy, V x, V) const {
    const Tag d;
    const V half = Number(0.5f);
    const V distribution = hn::MulAdd(half, Erf(d, hn::Mul(x, Number(0.707106781f))), half);
    const V bell = Exp(d, hn::Mul(hn::Mul(x, Number(-0.5f)), x));
    const V density = hn::Mul(Number(0.398942280f), bell);
    return hn::Mul(dy, hn::MulAdd(x, density, distribution));
  }
};
struct GeluTanhGradient {
  // (1 + tanh(u)) / 2 is sigmoid(2 u), and 2 u is cubic.
  HWY_INLINE V operator()(V dy, V x, V) const {
    const V factor = Number(1.59576912f), square = hn::Mul(x, x);
    const V t = hn::Mul(x, hn::MulAdd(square, Number(0.0713548163f), factor));
    const V slope = hn::MulAdd(square, Number(0.214064449f), factor);
    return hn::Mul(dy, GatedDerivative(x, t, slope));
  }
};
struct QuickGeluGradient {
  HWY_INLINE V operator()(V dy, V x, V alpha) const {
    return hn::Mul(dy, GatedDerivative(x, hn::Mul(alpha, x), alpha));
  }
};

template <class Gradient>
void Loop(const float* dy, const float* x, float* dx, size_t n, float alpha) {
  const Tag d;
  const Gradient gradient;
  const size_t lanes = hn::Lanes(d);
  const V a = hn::Set(d, alpha);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    hn::StoreU(gradient(hn::LoadU(d, dy + i), hn::LoadU(d, x + i), a), d, dx + i);
  }
  if (i < n) {
    const V last = gradient(LoadPartial(d, dy + i, n - i), LoadPartial(d, x + i, n - i), a);
    StorePartial(last, d, dx + i, n - i);
  }
}

void Gradient(GradientOp op, const float* dy, const float* x, float* dx, size_t n, float alpha) {
  switch (op) {
    case GradientOp::kRelu:
      return Loop<ReluGradient>(dy, x, dx, n, alpha);
    case GradientOp::kLeakyRelu:
      return Loop<LeakyReluGradient>(dy, x, dx, n, alpha);
    case GradientOp::kSigmoid:
      return Loop<SigmoidGradient>(dy, x, dx, n, alpha);
    case GradientOp::kTanh:
      return Loop<TanhGradient>(dy, x, dx, n, alpha);
    case GradientOp::kGelu:
      return Loop<GeluGradient>(dy, x, dx, n, alpha);
    case GradientOp::kGeluTanh:
      return Loop<GeluTanhGradient>(dy, x, dx, n, alpha);
    case GradientOp::kQuickGelu:
      return Loop<QuickGeluGradient>(dy, x, dx, n, alpha);
  }
}

const ActivationGradientTable kActivationGradientTable = {&Gradient};

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace tenon::kernels {

void ActivationGradient(GradientOp op, const float* dy, const float* x, float* dx, size_t n,
                        float alpha) {
  TENON_SELECT_TABLE(ActivationGradientTable, kActivationGradientTable)
      .gradient(op, dy, x, dx, n, alpha);
}

}  // namespace tenon::kernels
#endif
