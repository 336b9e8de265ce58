// Elementary functions on vectors of float, for use inside kernels: included once per target.
//
// Every function maps a lane to a lane: the result depends on the lane's value alone, never on its
// position or on the other lanes. NaN gives NaN; infinities, both zeros, subnormal arguments and
// subnormal results follow C's <math.h>. Errors are stated in units in the last place (ULP) of the
// float result and hold on every target. Coefficients are minimax fits, rounded to float, that
// scripts/minimax.py computes. Where a function has two results, the second goes to a reference:
// SVE's vectors cannot be members of a struct.
#if defined(TENON_KERNELS_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_MATH_INL_H_
#undef TENON_KERNELS_MATH_INL_H_
#else
#define TENON_KERNELS_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/min_max-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// c0 + c1 x + c2 x^2 + ...
template <class D, class V, class T = hn::TFromD<D>>
HWY_INLINE V Polynomial(D d, V /*x*/, T c0) {
  return hn::Set(d, c0);
}
template <class D, class V, class T = hn::TFromD<D>, class... More>
HWY_INLINE V Polynomial(D d, V x, T c0, More... more) {
  return hn::MulAdd(Polynomial(d, x, more...), x, hn::Set(d, c0));
}

// min(max(x, low), high), but NaN for NaN.
template <class D, class V>
HWY_INLINE V ClampKeepNan(D d, V x, hn::TFromD<D> low, hn::TFromD<D> high) {
  return MinOrSecond(hn::Set(d, high), MaxOrSecond(hn::Set(d, low), x));
}

// A power of two as float from an integer in [-126, 127].
template <class D, class VI>
HWY_INLINE hn::Vec<D> PowerOfTwo(D d, VI exponent) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, hn::Set(di, 127))));
}

// Whether one instruction multiplies by 2^n, even if 2^n is no float.
#undef TENON_SCALES_BY_POWERS
#define TENON_SCALES_BY_POWERS (HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3)

// p 2^n, correctly rounded, for integral n in [-252, 252] and |p| in [1/2, 2].
template <class D, class V>
HWY_INLINE V TimesPowerOfTwo(D d, V p, V n) {
#if TENON_SCALES_BY_POWERS
  (void)d;
  if constexpr (sizeof(V) == 64) {
    return V{_mm512_scalef_ps(p.raw, n.raw)};
  } else if constexpr (sizeof(V) == 32) {
    return V{_mm256_scalef_ps(p.raw, n.raw)};
  } else {
    return V{_mm_scalef_ps(p.raw, n.raw)};
  }
#else
  const hn::RebindToSigned<D> di;
  const auto exponent = hn::ConvertTo(di, n);
  // Two factors: 2^n alone may be no float although the product is one.
  const auto half = hn::ShiftRight<1>(exponent);
  return hn::Mul(hn::Mul(p, PowerOfTwo(d, half)), PowerOfTwo(d, hn::Sub(exponent, half)));
#endif
}

// Adding it to a float of at most 2^20 rounds that to an integer n; the sum's low bits are those of
// n + bias.
constexpr float RoundingAddend(int bias) { return 12582912.0f + static_cast<float>(bias); }

// Returns r where x = n ln2 + r with n the nearest integer to `nearest` / ln2, and |r| <= ln2 / 2
// if x is `nearest`, for |nearest| < 2^20. `addend` is a RoundingAddend; `sum` is n plus it.
template <class D, class V>
HWY_INLINE V ReduceForExp(D d, V x, V nearest, V addend, V& n, V& sum) {
  sum = hn::MulAdd(nearest, hn::Set(d, 1.44269504f), addend);
  n = hn::Sub(sum, addend);
  // ln2 in two parts; the first has 15 bits, so that its product with n is exact without FMA too.
  const V r = hn::NegMulAdd(n, hn::Set(d, 0.693145751953125f), x);
  return hn::NegMulAdd(n, hn::Set(d, 1.428606765330187e-6f), r);
}

// Returns r where x = n ln2 + r with n the nearest integer and |r| <= ln2 / 2, for |x| < 2^20.
template <class D, class V>
HWY_INLINE V ReduceForExp(D d, V x, V& n) {
  V sum;
  return ReduceForExp(d, x, x, hn::Set(d, RoundingAddend(0)), n, sum);
}

// 2^n from the sum of n and RoundingAddend(127).
template <class D, class V>
HWY_INLINE V PowerOfSum(D d, V sum) {
  const hn::RebindToSigned<D> di;
  return hn::BitCast(d, hn::ShiftLeft<23>(hn::BitCast(di, sum)));
}

// exp(r) - 1 for |r| <= ln2 / 2.
template <class D, class V>
HWY_INLINE V Expm1Reduced(D d, V r) {
  const V p = Polynomial(d, r, 0.5f, 1.666651219e-01f, 4.166618735e-02f, 8.369598538e-03f,
                         1.395172440e-03f);
  return hn::MulAdd(hn::Mul(r, r), p, r);
}

// exp(x) 2^kExponent without overflow or underflow of intermediate results. Max error: 1.2 ULP.
template <int kExponent, class D, class V>
HWY_INLINE V ExpTimesPowerOfTwo(D d, V x) {
  // Beyond these limits the result is 0 or infinity anyway.
  const V within = ClampKeepNan(d, x, -104.0f, 90.0f);
  V n;
#if TENON_SCALES_BY_POWERS
  const V r = ReduceForExp(d, within, n);
  const V p = hn::Add(hn::Set(d, 1.0f), Expm1Reduced(d, r));
  return TimesPowerOfTwo(d, p, hn::Add(n, hn::Set(d, float{kExponent})));
#else
  // First times a power of two that is a float in any case, then times what is left.
  constexpr int kBias = 127 + kExponent;
  const V addend = hn::IfNegativeThenElse(within, hn::Set(d, RoundingAddend(kBias + 64)),
                                          hn::Set(d, RoundingAddend(kBias - 64)));
  const V left = hn::IfNegativeThenElse(within, hn::Set(d, 0x1p-64f), hn::Set(d, 0x1p64f));
  V sum;
  const V r = ReduceForExp(d, within, within, addend, n, sum);
  const V p = hn::Add(hn::Set(d, 1.0f), Expm1Reduced(d, r));
  return hn::Mul(hn::Mul(p, PowerOfSum(d, sum)), left);
#endif
}

// Max error: 1.2 ULP.
template <class D, class V>
HWY_INLINE V Exp(D d, V x) {
  return ExpTimesPowerOfTwo<0>(d, x);
}

// exp(x) for x <= 0 or NaN, a little faster. Max error: 1.2 ULP.
template <class D, class V>
HWY_INLINE V ExpNonPositive(D d, V x) {
  const V within = MaxOrSecond(hn::Set(d, -104.0f), x);
  V n;
#if TENON_SCALES_BY_POWERS
  const V r = ReduceForExp(d, within, n);
  return TimesPowerOfTwo(d, hn::Add(hn::Set(d, 1.0f), Expm1Reduced(d, r)), n);
#else
  // Beside 2^64, 2^n is a float.
  V sum;
  const V addend = hn::Set(d, RoundingAddend(127 + 64));
  const V r = ReduceForExp(d, within, within, addend, n, sum);
  const V p = hn::Add(hn::Set(d, 1.0f), Expm1Reduced(d, r));
  return hn::Mul(hn::Mul(p, PowerOfSum(d, sum)), hn::Set(d, 0x1p-64f));
#endif
}

// Max error: 2 ULP.
template <class D, class V>
HWY_INLINE V Expm1(D d, V x) {
  V n;
  const V p = Expm1Reduced(d, ReduceForExp(d, ClampKeepNan(d, x, -25.0f, 88.8f), n));
  // 2 (2^(n-1) (p + 1) - 1/2): 2^n itself is no float for n = 128.
  const V scale = TimesPowerOfTwo(d, hn::Set(d, 0.5f), n);
  const V half = hn::MulAdd(scale, p, hn::Sub(scale, hn::Set(d, 0.5f)));
  const V y = hn::Add(half, half);
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-10f)), x, y);
}

// Returns m where u = 2^e m with m in [sqrt(1/2), sqrt(2)), for normal positive u.
template <class D, class V>
HWY_INLINE V ReduceForLog(D d, V u, hn::Vec<hn::RebindToSigned<D>>& e) {
  const hn::RebindToSigned<D> di;
  const auto bits = hn::BitCast(di, u);
  e = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(di, 0x3f3504f3)));
  return hn::BitCast(d, hn::Sub(bits, hn::ShiftLeft<23>(e)));
}

// log(2^e (1 + f)) for f in [sqrt(1/2) - 1, sqrt(2) - 1].
template <class D, class V>
HWY_INLINE V LogReduced(D d, V f, V e) {
  const V p =
      Polynomial(d, f, 3.333333135e-01f, -2.500081956e-01f, 2.000122666e-01f, -1.662335843e-01f,
                 1.420175880e-01f, -1.316017956e-01f, 1.276157945e-01f, -7.634509355e-02f);
  const V f2 = hn::Mul(f, f);
  V y = hn::MulAdd(e, hn::Set(d, 1.428606765330187e-6f), hn::Mul(hn::Mul(f, f2), p));
  y = hn::NegMulAdd(hn::Set(d, 0.5f), f2, y);
  return hn::MulAdd(e, hn::Set(d, 0.693145751953125f), hn::Add(f, y));
}

// `y`, but -inf where u is 0, NaN where u is negative or NaN, +inf where u is.
template <class D, class V>
HWY_INLINE V LogSpecialCases(D d, V u, V y) {
  using Limits = std::numeric_limits<hn::TFromD<D>>;
  const V zero = hn::Zero(d);
  const V inf = hn::Set(d, Limits::infinity());
  const V other = hn::IfThenElse(hn::Lt(u, zero), hn::Set(d, Limits::quiet_NaN()), u);
  const V special = hn::IfThenElse(hn::Eq(u, zero), hn::Neg(inf), other);
  return hn::IfThenElse(hn::And(hn::Gt(u, zero), hn::Lt(u, inf)), y, special);
}

// Max error: 1 ULP.
template <class D, class V>
HWY_INLINE V Log(D d, V x) {
  const auto subnormal = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  hn::Vec<hn::RebindToSigned<D>> exponent;
  const V m = ReduceForLog(d, scaled, exponent);
  const V e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(subnormal, hn::Set(d, 23.0f)));
  return LogSpecialCases(d, x, LogReduced(d, hn::Sub(m, hn::Set(d, 1.0f)), e));
}

// Max error: 2 ULP.
template <class D, class V>
HWY_INLINE V Log1p(D d, V x) {
  const hn::RebindToSigned<D> di;
  const V one = hn::Set(d, 1.0f);
  const V u = hn::Add(one, x);
  // u + error == 1 + x exactly.
  const V x_in_u = hn::Sub(u, one);
  const V error = hn::Add(hn::Sub(one, hn::Sub(u, x_in_u)), hn::Sub(x, x_in_u));
  hn::Vec<decltype(di)> e;
  const V m = ReduceForLog(d, u, e);
  const auto minus_e = hn::Max(hn::Sub(hn::Zero(di), e), hn::Set(di, -126));
  const V scale = PowerOfTwo(d, minus_e);
  const V f = hn::MulAdd(error, scale, hn::Sub(m, one));
  const V y = LogSpecialCases(d, u, LogReduced(d, f, hn::ConvertTo(d, e)));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-10f)), x, y);
}

// Max error: 7 ULP.
template <class D, class V>
HWY_INLINE V Tanh(D d, V x) {
  // Beyond 9.02 the result rounds to 1.
  const V c = ClampKeepNan(d, x, -9.02f, 9.02f);
  const V t = hn::Mul(c, c);
  const V p = Polynomial(d, t, 1.0f, 1.368418634e-01f, 3.873615060e-03f, 2.811015474e-05f,
                         3.081589739e-08f, -1.236011293e-11f);
  const V q = Polynomial(d, t, 1.0f, 4.701752067e-01f, 2.726535872e-02f, 3.947811492e-04f,
                         1.294327603e-06f);
  return ClampKeepNan(d, hn::Div(hn::Mul(c, p), q), -1.0f, 1.0f);
}

// Max error: 8 ULP.
template <class D, class V>
HWY_INLINE V Erf(D d, V x) {
  // Beyond 3.925 the result rounds to 1.
  const V c = ClampKeepNan(d, x, -3.925f, 3.925f);
  const V t = hn::Mul(c, c);
  const V p = Polynomial(d, t, 1.128379107e+00f, 1.905568540e-01f, 5.276441202e-02f,
                         3.770944895e-03f, 2.848035074e-04f, 2.046272584e-06f);
  const V q = Polynomial(d, t, 1.0f, 5.022093654e-01f, 1.141674519e-01f, 1.498001814e-02f,
                         1.163459383e-03f, 3.804819426e-05f);
  return ClampKeepNan(d, hn::Div(hn::Mul(c, p), q), -1.0f, 1.0f);
}

// 1 / (1 + exp(-x)). Max error: 3 ULP.
template <class D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  // Numerator and denominator are multiplied by 2^-24, so that the power may be up to 2^150, beyond
  // which the result is 0. Below 2^-29 the denominator rounds to 1.
  constexpr int kScale = -24;
  const V scale = hn::Set(d, 0x1p-24f);
  const V above = MaxOrSecond(hn::Set(d, -20.0f), hn::Neg(x));
  const V within = MinOrSecond(hn::Set(d, 104.0f), above);
  V n, sum;
  // Above 104, n stays and r grows, to infinity if x is infinite.
  const V addend = hn::Set(d, RoundingAddend(127 + kScale));
  const V r = ReduceForExp(d, above, within, addend, n, sum);
  const V power = PowerOfSum(d, sum);
  return hn::Div(scale, hn::MulAdd(power, Expm1Reduced(d, r), hn::Add(power, scale)));
}

// log(1 + z) for z in [0, 1] or NaN: Log1p without the cases that cannot be. Max error: 2 ULP.
template <class D, class V>
HWY_INLINE V Log1pOfUnit(D d, V z) {
  const V one = hn::Set(d, 1.0f);
  const V half = hn::Set(d, 0.5f);
  const V u = hn::Add(one, z);
  const V error = hn::Sub(z, hn::Sub(u, one));
  const auto large = hn::Gt(u, hn::Set(d, 1.41421354f));
  const V scale = hn::IfThenElse(large, half, one);
  const V f = hn::MulAdd(error, scale, hn::MulSub(u, scale, one));
  return LogReduced(d, f, hn::IfThenElseZero(large, one));
}

// log(1 + exp(x)). Max error: 2 ULP.
template <class D, class V>
HWY_INLINE V Softplus(D d, V x) {
  const V z = ExpNonPositive(d, hn::Neg(hn::Abs(x)));
  return hn::Add(MaxOrSecond(hn::Zero(d), x), Log1pOfUnit(d, z));
}

// Correctly rounded.
template <class D, class V>
HWY_INLINE V Sqrt(D /*d*/, V x) {
  return hn::Sqrt(x);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
