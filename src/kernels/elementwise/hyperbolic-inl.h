// Hyperbolic functions and their inverses on vectors of float; conventions as in math-inl.h, which
// has Tanh.
#if defined(TENON_KERNELS_HYPERBOLIC_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_HYPERBOLIC_INL_H_
#undef TENON_KERNELS_HYPERBOLIC_INL_H_
#else
#define TENON_KERNELS_HYPERBOLIC_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Max error: 3 ULP.
template <class D, class V>
HWY_INLINE V Sinh(D d, V x) {
  const V a = hn::Abs(x);
  const V t = hn::Mul(x, x);
  const V p = Polynomial(d, t, 1.666671783e-01f, 8.330211043e-03f, 2.037740487e-04f);
  const V near = hn::MulAdd(hn::Mul(x, t), p, x);
  const V half_exp = ExpTimesPowerOfTwo<-1>(d, a);
  const V far = hn::Sub(half_exp, hn::Div(hn::Set(d, 0.25f), half_exp));
  const auto small = hn::Lt(a, hn::Set(d, 1.0f));
  return hn::CopySign(hn::IfThenElse(small, near, far), x);
}

// Max error: 2 ULP.
template <class D, class V>
HWY_INLINE V Cosh(D d, V x) {
  const V half_exp = ExpTimesPowerOfTwo<-1>(d, hn::Abs(x));
  return hn::Add(half_exp, hn::Div(hn::Set(d, 0.25f), half_exp));
}

// Max error: 3 ULP.
template <class D, class V>
HWY_INLINE V Asinh(D d, V x) {
  const V a = hn::Abs(x);
  const V one = hn::Set(d, 1.0f);
  // For larger |x|, x^2 + 1 is x^2, and x^2 would overflow below.
  const auto large = hn::Gt(a, hn::Set(d, 1e6f));
  const V c = hn::IfThenElse(large, one, a);
  const V c2 = hn::Mul(c, c);
  const V near = Log1p(d, hn::Add(c, hn::Div(c2, hn::Add(one, hn::Sqrt(hn::Add(c2, one))))));
  const V far = hn::Add(Log(d, a), hn::Set(d, 0.693147182f));
  return hn::CopySignToAbs(hn::IfThenElse(large, far, near), x);
}

// Max error: 3 ULP. NaN below 1.
template <class D, class V>
HWY_INLINE V Acosh(D d, V x) {
  const V one = hn::Set(d, 1.0f);
  const auto large = hn::Gt(x, hn::Set(d, 1e6f));
  const V t = hn::Sub(hn::IfThenElse(large, one, x), one);
  const V near = Log1p(d, hn::Add(t, hn::Sqrt(hn::MulAdd(t, t, hn::Add(t, t)))));
  const V far = hn::Add(Log(d, x), hn::Set(d, 0.693147182f));
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  return hn::IfThenElse(hn::Lt(x, one), nan, hn::IfThenElse(large, far, near));
}

// Max error: 3 ULP. NaN outside [-1, 1].
template <class D, class V>
HWY_INLINE V Atanh(D d, V x) {
  const V a = hn::Abs(x);
  const V quotient = hn::Div(hn::Add(a, a), hn::Sub(hn::Set(d, 1.0f), a));
  return hn::CopySignToAbs(hn::Mul(hn::Set(d, 0.5f), Log1p(d, quotient)), x);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
