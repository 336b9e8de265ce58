// Elementary functions on vectors of double: overloads of those of float, with their conventions
// (math-inl.h). Errors are in ULP of the double result. Included once per target.
#if defined(TENON_KERNELS_DOUBLE_MATH_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_DOUBLE_MATH_INL_H_
#undef TENON_KERNELS_DOUBLE_MATH_INL_H_
#else
#define TENON_KERNELS_DOUBLE_MATH_INL_H_
#endif

#include <hwy/highway.h>

#include <limits>

#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
concept DoubleTag = sizeof(hn::TFromD<D>) == sizeof(double);

// Adding it to a double of at most 2^50 rounds that to an integer n; the sum's low bits are those
// of n + bias.
constexpr double DoubleRoundingAddend(int bias) { return 0x1.8p52 + bias; }

// As of floats: x = n ln2 + r, for |nearest| < 2^20.
template <DoubleTag D, class V>
HWY_INLINE V ReduceForExp(D d, V x, V nearest, V addend, V& n, V& sum) {
  sum = hn::MulAdd(nearest, hn::Set(d, 1.4426950408889634), addend);
  n = hn::Sub(sum, addend);
  // The first part of ln2 has 32 bits, so that its product with n is exact without FMA too.
  const V r = hn::NegMulAdd(n, hn::Set(d, 0x1.62e42feep-1), x);
  return hn::NegMulAdd(n, hn::Set(d, 1.9082149292705877e-10), r);
}

// 2^n from the sum of n and DoubleRoundingAddend(1023).
template <DoubleTag D, class V>
HWY_INLINE V PowerOfSum(D d, V sum) {
  const hn::RebindToUnsigned<D> du;
  return hn::BitCast(d, hn::ShiftLeft<52>(hn::BitCast(du, sum)));
}

template <DoubleTag D, class V>
HWY_INLINE V Expm1Reduced(D d, V r) {
  const V p = Polynomial(d, r, 0.5000000000000014, 0.16666666666666702, 0.041666666666503024,
                         0.008333333333305066, 0.0013888888950553805, 0.00019841269922017535,
                         2.4801486029336364e-05, 2.755721215844713e-06, 2.7632752717315854e-07,
                         2.5119173367804424e-08);
  return hn::MulAdd(hn::Mul(r, r), p, r);
}

// Max error: 1 ULP.
template <DoubleTag D, class V>
HWY_INLINE V Exp(D d, V x) {
  // Beyond these limits the result is 0 or infinity anyway.
  const V within = ClampKeepNan(d, x, -746.0, 710.0);
  // First times a power of two that is a double in any case, then times what is left.
  const V addend = hn::IfNegativeThenElse(within, hn::Set(d, DoubleRoundingAddend(1023 + 512)),
                                          hn::Set(d, DoubleRoundingAddend(1023 - 512)));
  const V left = hn::IfNegativeThenElse(within, hn::Set(d, 0x1p-512), hn::Set(d, 0x1p512));
  V n, sum;
  const V r = ReduceForExp(d, within, within, addend, n, sum);
  const V p = hn::Add(hn::Set(d, 1.0), Expm1Reduced(d, r));
  return hn::Mul(hn::Mul(p, PowerOfSum(d, sum)), left);
}

// exp(x) - 1 for x in [-40, 709] or NaN. Max error: 2 ULP.
template <DoubleTag D, class V>
HWY_INLINE V Expm1Within(D d, V x) {
  V n, sum;
  const V p =
      Expm1Reduced(d, ReduceForExp(d, x, x, hn::Set(d, DoubleRoundingAddend(1022)), n, sum));
  // 2 (2^(n-1) (p + 1) - 1/2): 2^n itself is no double for n = 1024.
  const V half_power = PowerOfSum(d, sum);
  const V half = hn::MulAdd(half_power, p, hn::Sub(half_power, hn::Set(d, 0.5)));
  return hn::Add(half, half);
}

// Max error: 2 ULP.
template <DoubleTag D, class V>
HWY_INLINE V Expm1(D d, V x) {
  const V y = Expm1Within(d, ClampKeepNan(d, x, -40.0, 709.8));
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, 1e-20)), x, y);
}

// Max error: 1 ULP.
template <DoubleTag D, class V>
HWY_INLINE V Log(D d, V x) {
  const hn::RebindToUnsigned<D> du;
  const V one = hn::Set(d, 1.0);
  const auto subnormal = hn::Lt(x, hn::Set(d, std::numeric_limits<double>::min()));
  const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 0x1p54)), x);
  // scaled = 2^e m with m in [sqrt(1/2), sqrt(2)); e + 1023 are the bits of `biased`.
  const auto bits = hn::BitCast(du, scaled);
  const auto bits_of_one = hn::BitCast(du, one);
  const auto root = hn::BitCast(du, hn::Set(d, 0.70710678118654752));
  const auto biased = hn::ShiftRight<52>(hn::Add(hn::Sub(bits, root), bits_of_one));
  const V m = hn::BitCast(d, hn::Add(hn::Sub(bits, hn::ShiftLeft<52>(biased)), bits_of_one));
  const V magic = hn::Set(d, 0x1p52);
  const V bias =
      hn::IfThenElse(subnormal, hn::Set(d, 0x1p52 + 1023 + 54), hn::Set(d, 0x1p52 + 1023));
  const V e = hn::Sub(hn::BitCast(d, hn::Or(biased, hn::BitCast(du, magic))), bias);
  // log(1 + f) = f - f^2 / 2 + s (f^2 / 2 + q) where s = f / (2 + f) and 2 atanh(s) = 2 s + s q.
  const V f = hn::Sub(m, one);
  const V s = hn::Div(f, hn::Add(hn::Set(d, 2.0), f));
  const V z = hn::Mul(s, s);
  const V q = hn::Mul(z, Polynomial(d, z, 0.6666666666666735, 0.39999999999411096,
                                    0.2857142874326243, 0.22222198475988242, 0.18183569740495178,
                                    0.15313903211891272, 0.14797508218137082));
  const V half_square = hn::Mul(hn::Mul(hn::Set(d, 0.5), f), f);
  V y = hn::MulAdd(s, hn::Add(half_square, q), hn::Mul(e, hn::Set(d, 1.9082149292705877e-10)));
  y = hn::Sub(f, hn::Sub(half_square, y));
  return LogSpecialCases(d, x, hn::MulAdd(e, hn::Set(d, 0x1.62e42feep-1), y));
}

// Max error: 2 ULP.
template <DoubleTag D, class V>
HWY_INLINE V Tanh(D d, V x) {
  // Beyond 19.1 the result rounds to 1. It is t / (t + 2) with t = exp(2 |x|) - 1.
  const V a = MinOrSecond(hn::Set(d, 20.0), hn::Abs(x));
  const V t = Expm1Within(d, hn::Add(a, a));
  return hn::CopySignToAbs(hn::Div(t, hn::Add(t, hn::Set(d, 2.0))), x);
}

// 1 / (1 + exp(-x)). Max error: 2.5 ULP.
template <DoubleTag D, class V>
HWY_INLINE V Sigmoid(D d, V x) {
  const V one = hn::Set(d, 1.0);
  const V z = Exp(d, hn::Neg(hn::Abs(x)));
  return hn::Div(hn::IfNegativeThenElse(x, z, one), hn::Add(one, z));
}

// log(1 + exp(x)). Max error: 2 ULP.
template <DoubleTag D, class V>
HWY_INLINE V Softplus(D d, V x) {
  const V one = hn::Set(d, 1.0);
  const V z = Exp(d, hn::Neg(hn::Abs(x)));
  const V u = hn::Add(one, z);
  // u + error == 1 + z exactly.
  const V error = hn::Sub(z, hn::Sub(u, one));
  const V log = hn::Add(Log(d, u), hn::Div(error, u));
  return hn::Add(MaxOrSecond(hn::Zero(d), x), log);
}

// erf(x) for |x| <= 1.
template <DoubleTag D, class V>
HWY_INLINE V ErfOfUnit(D d, V x) {
  const V p =
      Polynomial(d, hn::Mul(x, x), 1.1283791670955126, -0.3761263890318352, 0.11283791670944185,
                 -0.026866170643111472, 0.0052239776061185845, -0.0008548325929322255,
                 0.00012055293577183465, -1.4924712308155674e-05, 1.6447131653817615e-06,
                 -1.6206314430940447e-07, 1.3710983445964604e-08, -7.779474387674627e-10);
  return hn::Mul(x, p);
}

// 1 - erf(a) for a >= 1 or NaN.
template <DoubleTag D, class V>
HWY_INLINE V ErfcFromOne(D d, V a) {
  // It is exp(-a^2) times a function that decreases slowly, t p(t) with t = 1 / (1 + a / 3). Beyond
  // 28 it rounds to 0.
  const V three = hn::Set(d, 3.0);
  const V t = hn::Div(three, hn::Add(three, a));
  const V p = Polynomial(
      d, t, 0.1880631945192428, 0.1880631942691547, 0.17761524769090672, 0.15671915287012275,
      0.12711930574542846, 0.09226404007934452, 0.05718656929945709, 0.024959886363355027,
      0.010054236908289039, -0.03020492429707745, 0.057901346857617164, -0.16454810409680082,
      0.2933728045643979, -0.40825435738651655, 0.43128419384988875, -0.30303298819050545,
      0.12215207106453686, -0.017629391216148205, -0.004716528620047979, 0.0016310682091172912);
  return hn::Mul(Exp(d, hn::Neg(hn::Mul(a, a))), hn::Mul(t, p));
}

// Max error: 1.5 ULP.
template <DoubleTag D, class V>
HWY_INLINE V Erf(D d, V x) {
  const V a = hn::Abs(x);
  const V one = hn::Set(d, 1.0);
  const V far = hn::CopySignToAbs(hn::Sub(one, ErfcFromOne(d, a)), x);
  return hn::IfThenElse(hn::Lt(a, one), ErfOfUnit(d, x), far);
}

// 1 - erf(x). Max error: x^2 + 2 ULP for x > 0, else 1 ULP.
template <DoubleTag D, class V>
HWY_INLINE V Erfc(D d, V x) {
  const V a = hn::Abs(x);
  const V one = hn::Set(d, 1.0);
  const V tail = ErfcFromOne(d, a);
  const V far = hn::IfNegativeThenElse(x, hn::Sub(hn::Set(d, 2.0), tail), tail);
  return hn::IfThenElse(hn::Lt(a, one), hn::Sub(one, ErfOfUnit(d, x)), far);
}

// f of each lane, for functions that have no code on vectors of double.
template <DoubleTag D, class V, class F>
HWY_INLINE V EachLane(D d, V x, F f) {
  HWY_ALIGN double lanes[HWY_MAX_BYTES / sizeof(double)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = f(lanes[i]);
  return hn::Load(d, lanes);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
