// One functor for every UnaryOp: functor(d, x, a, b), where a and b hold the function's parameters
// in every lane. Shared by whole-array loops and by fused ones.
#if defined(TENON_KERNELS_UNARY_FUNCTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_UNARY_FUNCTORS_INL_H_
#undef TENON_KERNELS_UNARY_FUNCTORS_INL_H_
#else
#define TENON_KERNELS_UNARY_FUNCTORS_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>
#include <numbers>

#include "kernels/double_math-inl.h"
#include "kernels/elementwise/hyperbolic-inl.h"
#include "kernels/elementwise/trigonometry-inl.h"
#include "kernels/math-inl.h"
#include "kernels/min_max-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// -1, 0 or 1; NaN for NaN.
template <class D, class V>
HWY_INLINE V SignOf(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const V signed_one = hn::CopySignToAbs(one, x);
  return hn::IfThenElse(hn::Gt(hn::Abs(x), hn::Zero(d)), signed_one, x);
}

// x Phi(x), Phi the distribution function of the normal distribution.
template <class D, class V>
HWY_INLINE V Gelu(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::MulAdd(half, Erf(d, hn::Mul(x, hn::Set(d, 0.707106781f))), half);
}

template <DoubleTag D, class V>
HWY_INLINE V Gelu(D d, V x) {
  const V half = hn::Set(d, 0.5);
  return hn::Mul(hn::Mul(half, x), Erfc(d, hn::Mul(x, hn::Set(d, -std::numbers::sqrt2 / 2))));
}

// x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3). This is x / (1 + exp(-2 u)), which
// does not cancel below 0; its numerator and denominator are halved, so that exp overflows where
// the result underflows.
template <class D, class V>
HWY_INLINE V GeluTanh(D d, V x) {
  const V cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, -0.0713548163f), hn::Set(d, -1.59576912f));
  const V half_exp = ExpTimesPowerOfTwo<-1>(d, hn::Mul(x, cubic));
  const V half = hn::Set(d, 0.5f);
  return hn::Div(hn::Mul(half, x), hn::Add(half, half_exp));
}

template <DoubleTag D, class V>
HWY_INLINE V GeluTanh(D d, V x) {
  const V factor =
      hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.071354816272600244), hn::Set(d, 1.5957691216057307));
  return hn::Mul(x, Sigmoid(d, hn::Mul(x, factor)));
}

// x min(max(x / 6 + 1/2, 0), 1).
template <class D, class V>
HWY_INLINE V HardSwish(D d, V x) {
  using T = hn::TFromD<D>;
  const V gate = hn::MulAdd(x, hn::Set(d, T{1} / 6), hn::Set(d, T{0.5}));
  return hn::Mul(x, ClampKeepNan(d, gate, 0, 1));
}

// x tanh(log(1 + exp(x))), which is x q / (q + 2) with q = e^x (e^x + 2).
template <class D, class V>
HWY_INLINE V Mish(D d, V x) {
  const V two = hn::Set(d, 2.0f);
  // Above 20 the quotient rounds to 1.
  const V e = Exp(d, MinOrSecond(hn::Set(d, 20.0f), x));
  const V q = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(q, hn::Add(q, two)));
}

// The formula is what comes first; where there is another on one double, that is for all lanes.
#define TENON_FIRST(first, ...) first
#define UNARY_FUNCTION(name, parameters, traits, formula, ...)                                     \
  struct name##Functor {                                                                           \
    template <class D, class V>                                                                    \
    HWY_INLINE V operator()([[maybe_unused]] D d, V x, [[maybe_unused]] V a,                       \
                            [[maybe_unused]] V b) const {                                          \
      return formula;                                                                              \
    }                                                                                              \
    template <DoubleTag D, class V>                                                                \
    HWY_INLINE V operator()([[maybe_unused]] D d, V x, [[maybe_unused]] V a,                       \
                            [[maybe_unused]] V b) const {                                          \
      return TENON_FIRST(                                                                          \
          __VA_OPT__(EachLane(d, x, [](double x) -> double { return __VA_ARGS__; }), ) formula, ); \
    }                                                                                              \
  };
#include "base/unary_functions.inc"
#undef TENON_FIRST

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
