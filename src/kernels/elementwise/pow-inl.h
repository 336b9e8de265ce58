// Powers of vectors of float; conventions as in math-inl.h.
#if defined(TENON_KERNELS_POW_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_POW_INL_H_
#undef TENON_KERNELS_POW_INL_H_
#else
#define TENON_KERNELS_POW_INL_H_
#endif

#include <hwy/highway.h>

#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// a b - product, exactly, where product == Mul(a, b) and |a|, |b| < 2^100.
template <class D, class V>
HWY_INLINE V ProductError(D d, V a, V b, V product) {
#if HWY_NATIVE_FMA
  (void)d;
  return hn::MulSub(a, b, product);
#else
  // By Veltkamp and Dekker: halves of 12 bits have exact products.
  const V factor = hn::Set(d, 4097.0f);
  const V a_scaled = hn::Mul(a, factor);
  const V b_scaled = hn::Mul(b, factor);
  const V a_high = hn::Sub(a_scaled, hn::Sub(a_scaled, a));
  const V b_high = hn::Sub(b_scaled, hn::Sub(b_scaled, b));
  const V a_low = hn::Sub(a, a_high);
  const V b_low = hn::Sub(b, b_high);
  V error = hn::Sub(hn::Mul(a_high, b_high), product);
  error = hn::Add(error, hn::Mul(a_high, b_low));
  error = hn::Add(error, hn::Mul(a_low, b_high));
  return hn::Add(error, hn::Mul(a_low, b_low));
#endif
}

// log2(x) to about 2^-32 as the sum of the result and `rest`, for finite x > 0.
template <class D, class V>
HWY_INLINE V Log2Extended(D d, V x, V& rest) {
  const V one = hn::Set(d, 1.0f);
  const auto subnormal = hn::Lt(x, hn::Set(d, std::numeric_limits<float>::min()));
  const V scaled = hn::IfThenElse(subnormal, hn::Mul(x, hn::Set(d, 8388608.0f)), x);
  hn::Vec<hn::RebindToSigned<D>> exponent;
  const V m = ReduceForLog(d, scaled, exponent);
  const V e = hn::Sub(hn::ConvertTo(d, exponent), hn::IfThenElseZero(subnormal, hn::Set(d, 23.0f)));
  // s = (m - 1) / (m + 1), so that log(m) = 2 atanh(s); |s| < 0.172.
  const V f = hn::Sub(m, one);
  const V sum = hn::Add(m, one);
  const V sum_low = hn::Sub(m, hn::Sub(sum, one));
  const V inverse = hn::Div(one, sum);
  const V s = hn::Mul(f, inverse);
  const V back = hn::Mul(s, sum);
  const V s_error = hn::Sub(hn::Sub(f, back), ProductError(d, s, sum, back));
  const V s_low = hn::Mul(hn::NegMulAdd(s, sum_low, s_error), inverse);
  // 2 / ln2 in two parts.
  const V c = hn::Set(d, 2.88539004f);
  const V c_low = hn::Set(d, 3.851925e-8f);
  const V t = hn::Mul(s, s);
  const V p =
      Polynomial(d, t, 9.617967010e-01f, 5.770829320e-01f, 4.117007256e-01f, 3.403316736e-01f);
  const V high = hn::Mul(s, c);
  V low = hn::MulAdd(s_low, c, ProductError(d, s, c, high));
  low = hn::MulAdd(s, c_low, low);
  low = hn::MulAdd(hn::Mul(s, t), p, low);
  // Two exact sums, the larger term first.
  const V sum_high = hn::Add(e, high);
  low = hn::Add(hn::Sub(high, hn::Sub(sum_high, e)), low);
  const V total = hn::Add(sum_high, low);
  rest = hn::Sub(low, hn::Sub(total, sum_high));
  return total;
}

// 2^(x + x_low) for a small x_low.
template <class D, class V>
HWY_INLINE V Exp2Extended(D d, V x, V x_low) {
  const V clamped = ClampKeepNan(d, x, -160.0f, 160.0f);
  const V low = hn::IfThenElseZero(hn::Lt(hn::Abs(x), hn::Set(d, 160.0f)), x_low);
  const V magic = hn::Set(d, 12582912.0f);
  const V n = hn::Sub(hn::Add(clamped, magic), magic);
  const V r = hn::Add(hn::Sub(clamped, n), low);
  const V p = Polynomial(d, r, 6.931471825e-01f, 2.402265072e-01f, 5.550327897e-02f,
                         9.618003853e-03f, 1.340026967e-03f, 1.547630236e-04f);
  const V y = hn::MulAdd(r, p, hn::Set(d, 1.0f));
  return TimesPowerOfTwo(d, y, n);
}

// x^y with the special cases of C's pow. Max error: 4 ULP; x^2 is x * x.
template <class D, class V>
HWY_INLINE V Pow(D d, V x, V y) {
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0f);
  const V inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  const V a = hn::Abs(x);
  // For |y| above 2^34 only a == 1 has a result other than 0 and infinity.
  const V c = ClampKeepNan(d, y, -17179869184.0f, 17179869184.0f);
  V log2_low;
  const V log2 = Log2Extended(d, a, log2_low);
  const V product = hn::Mul(c, log2);
  const V product_low = hn::MulAdd(c, log2_low, ProductError(d, c, log2, product));
  V power = Exp2Extended(d, product, product_low);

  const auto negative_y = hn::Lt(y, zero);
  power = hn::IfThenElse(hn::Eq(a, zero), hn::IfThenElseZero(negative_y, inf), power);
  power = hn::IfThenElse(hn::Eq(a, inf), hn::IfThenElse(negative_y, zero, inf), power);
  const auto integer = hn::Eq(hn::Floor(y), y);
  const V half_y = hn::Mul(y, hn::Set(d, 0.5f));
  const auto odd = hn::And(integer, hn::Ne(hn::Floor(half_y), half_y));
  const auto finite_negative = hn::And(hn::Lt(x, zero), hn::Lt(a, inf));
  power = hn::IfThenElse(hn::AndNot(integer, finite_negative), nan, power);
  power = hn::IfThenElse(odd, hn::CopySign(power, x), power);
  power = hn::IfThenElse(hn::Or(hn::IsNaN(x), hn::IsNaN(y)), nan, power);
  power = hn::IfThenElse(hn::Eq(y, hn::Set(d, 2.0f)), hn::Mul(x, x), power);
  return hn::IfThenElse(hn::Or(hn::Eq(x, one), hn::Eq(y, zero)), one, power);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
