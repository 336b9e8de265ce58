// One functor for every UnaryOp: functor(d, x, a, b), where a and b hold the function's parameters
// in every lane. Shared by whole-array loops and by fused ones.
#if defined(TENON_KERNELS_UNARY_FUNCTORS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_UNARY_FUNCTORS_INL_H_
#undef TENON_KERNELS_UNARY_FUNCTORS_INL_H_
#else
#define TENON_KERNELS_UNARY_FUNCTORS_INL_H_
#endif

#include <hwy/highway.h>

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

// x min(max(x / 6 + 1/2, 0), 1).
template <class D, class V>
HWY_INLINE V HardSwish(D d, V x) {
  const V gate = hn::MulAdd(x, hn::Set(d, 1.0f / 6), hn::Set(d, 0.5f));
  return hn::Mul(x, ClampKeepNan(d, gate, 0.0f, 1.0f));
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

#define UNARY_FUNCTION(name, parameters, traits, on_vectors, on_doubles)     \
  struct name##Functor {                                                     \
    template <class D, class V>                                              \
    HWY_INLINE V operator()([[maybe_unused]] D d, V x, [[maybe_unused]] V a, \
                            [[maybe_unused]] V b) const {                    \
      return on_vectors;                                                     \
    }                                                                        \
  };
#include "base/unary_functions.inc"

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
