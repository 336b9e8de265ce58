// One functor for every UnaryOp of elementwise.h: functor(d, x, a, b), where a and b hold the
// operator's parameters in every lane. Shared by whole-array loops and by fused ones.
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
HWY_INLINE V GeluErf(D d, V x) {
  const V half = hn::Mul(x, hn::Set(d, 0.5f));
  return hn::MulAdd(half, Erf(d, hn::Mul(x, hn::Set(d, 0.707106781f))), half);
}

// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, which is x sigmoid(2 sqrt(2 / pi) (...)).
template <class D, class V>
HWY_INLINE V GeluTanh(D d, V x) {
  const V cubic = hn::MulAdd(hn::Mul(x, x), hn::Set(d, 0.0713548163f), hn::Set(d, 1.59576912f));
  return hn::Mul(x, Sigmoid(d, hn::Mul(x, cubic)));
}

// x tanh(log(1 + exp(x))), which is x q / (q + 2) with q = e^x (e^x + 2).
template <class D, class V>
HWY_INLINE V Mish(D d, V x) {
  const V two = hn::Set(d, 2.0f);
  // Beyond 20 the quotient rounds to 1.
  const V e = Exp(d, MinOrSecond(hn::Set(d, 20.0f), x));
  const V q = hn::Mul(e, hn::Add(e, two));
  return hn::Mul(x, hn::Div(q, hn::Add(q, two)));
}

#define TENON_UNARY_FUNCTOR(Name, expression)                                \
  struct Name##Functor {                                                     \
    template <class D, class V>                                              \
    HWY_INLINE V operator()([[maybe_unused]] D d, V x, [[maybe_unused]] V a, \
                            [[maybe_unused]] V b) const {                    \
      return expression;                                                     \
    }                                                                        \
  };
TENON_UNARY_FUNCTOR(Abs, hn::Abs(x))
TENON_UNARY_FUNCTOR(Neg, hn::Neg(x))
TENON_UNARY_FUNCTOR(Sign, SignOf(d, x))
TENON_UNARY_FUNCTOR(Floor, hn::Floor(x))
TENON_UNARY_FUNCTOR(Ceil, hn::Ceil(x))
TENON_UNARY_FUNCTOR(Round, hn::Round(x))
TENON_UNARY_FUNCTOR(Sqrt, hn::Sqrt(x))
TENON_UNARY_FUNCTOR(Square, hn::Mul(x, x))
TENON_UNARY_FUNCTOR(Reciprocal, hn::Div(hn::Set(d, 1.0f), x))
TENON_UNARY_FUNCTOR(Rsqrt, hn::Div(hn::Set(d, 1.0f), hn::Sqrt(x)))
TENON_UNARY_FUNCTOR(Exp, Exp(d, x))
TENON_UNARY_FUNCTOR(Expm1, Expm1(d, x))
TENON_UNARY_FUNCTOR(Log, Log(d, x))
TENON_UNARY_FUNCTOR(Log1p, Log1p(d, x))
TENON_UNARY_FUNCTOR(Erf, Erf(d, x))
TENON_UNARY_FUNCTOR(Sin, Sin(d, x))
TENON_UNARY_FUNCTOR(Cos, Cos(d, x))
TENON_UNARY_FUNCTOR(Tan, Tan(d, x))
TENON_UNARY_FUNCTOR(Asin, Asin(d, x))
TENON_UNARY_FUNCTOR(Acos, Acos(d, x))
TENON_UNARY_FUNCTOR(Atan, Atan(d, x))
TENON_UNARY_FUNCTOR(Sinh, Sinh(d, x))
TENON_UNARY_FUNCTOR(Cosh, Cosh(d, x))
TENON_UNARY_FUNCTOR(Tanh, Tanh(d, x))
TENON_UNARY_FUNCTOR(Asinh, Asinh(d, x))
TENON_UNARY_FUNCTOR(Acosh, Acosh(d, x))
TENON_UNARY_FUNCTOR(Atanh, Atanh(d, x))
TENON_UNARY_FUNCTOR(Sigmoid, Sigmoid(d, x))
TENON_UNARY_FUNCTOR(HardSigmoid, ClampKeepNan(d, hn::MulAdd(a, x, b), 0.0f, 1.0f))
TENON_UNARY_FUNCTOR(
    HardSwish,
    hn::Mul(x, ClampKeepNan(d, hn::MulAdd(x, hn::Set(d, 1.0f / 6), hn::Set(d, 0.5f)), 0.0f, 1.0f)))
TENON_UNARY_FUNCTOR(Relu, MaxOrSecond(hn::Zero(d), x))
TENON_UNARY_FUNCTOR(LeakyRelu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(a, x), x))
TENON_UNARY_FUNCTOR(ThresholdedRelu, hn::IfThenElseZero(hn::Gt(x, a), x))
TENON_UNARY_FUNCTOR(Elu, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(a, Expm1(d, x)), x))
TENON_UNARY_FUNCTOR(Selu,
                    hn::Mul(b, hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(a, Expm1(d, x)), x)))
TENON_UNARY_FUNCTOR(Celu,
                    hn::IfThenElse(hn::Lt(x, hn::Zero(d)), hn::Mul(a, Expm1(d, hn::Div(x, a))), x))
TENON_UNARY_FUNCTOR(Softplus, Softplus(d, x))
TENON_UNARY_FUNCTOR(Softsign, hn::Div(x, hn::Add(hn::Set(d, 1.0f), hn::Abs(x))))
TENON_UNARY_FUNCTOR(Gelu, GeluErf(d, x))
TENON_UNARY_FUNCTOR(GeluTanh, GeluTanh(d, x))
TENON_UNARY_FUNCTOR(Silu, hn::Mul(x, Sigmoid(d, x)))
TENON_UNARY_FUNCTOR(Swish, hn::Mul(x, Sigmoid(d, hn::Mul(a, x))))
TENON_UNARY_FUNCTOR(Mish, Mish(d, x))
TENON_UNARY_FUNCTOR(Clip, MinOrSecond(b, MaxOrSecond(a, x)))
#undef TENON_UNARY_FUNCTOR

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
