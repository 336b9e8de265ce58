// Trigonometric functions on vectors of float, some also of double; conventions as in math-inl.h.
#if defined(TENON_KERNELS_TRIGONOMETRY_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef TENON_KERNELS_TRIGONOMETRY_INL_H_
#undef TENON_KERNELS_TRIGONOMETRY_INL_H_
#else
#define TENON_KERNELS_TRIGONOMETRY_INL_H_
#endif

#include <hwy/highway.h>

#include <cmath>

#include "kernels/double_math-inl.h"
#include "kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Keeps the quadrant below 2^13, so that its products with 11-bit parts of pi/2 are exact; or below
// 2^19 for doubles, with parts of 33 bits.
template <class T>
constexpr T kMaxReducibleAngle = sizeof(T) == sizeof(float) ? T{12800} : T{800000};

// Returns r where x = quadrant pi/2 + r with |r| <= pi/4, for |x| <= kMaxReducibleAngle. The
// quadrant is any integer; its two lowest bits matter.
template <class D, class V>
HWY_INLINE V ReduceAngle(D d, V x, hn::Vec<hn::RebindToSigned<D>>& quadrant) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, 12582912.0f);
  const V shifted = hn::MulAdd(x, hn::Set(d, 0.636619772f), magic);
  const V n = hn::Sub(shifted, magic);
  V r = hn::NegMulAdd(n, hn::Set(d, 1.5703125f), x);
  r = hn::NegMulAdd(n, hn::Set(d, 4.8351287841796875e-4f), r);
  r = hn::NegMulAdd(n, hn::Set(d, 3.1385570764541626e-07f), r);
  quadrant = hn::BitCast(di, shifted);
  return hn::NegMulAdd(n, hn::Set(d, 6.077100628276710e-11f), r);
}

template <DoubleTag D, class V>
HWY_INLINE V ReduceAngle(D d, V x, hn::Vec<hn::RebindToSigned<D>>& quadrant) {
  const hn::RebindToSigned<D> di;
  const V magic = hn::Set(d, DoubleRoundingAddend(0));
  const V shifted = hn::MulAdd(x, hn::Set(d, 0.63661977236758134), magic);
  const V n = hn::Sub(shifted, magic);
  const V first = hn::NegMulAdd(n, hn::Set(d, 0x1.921fb544p+0), x);
  const V second = hn::Mul(n, hn::Set(d, 0x1.0b4611a6p-34));
  const V r = hn::Sub(first, second);
  const V error = hn::Sub(hn::Sub(first, r), second);
  quadrant = hn::BitCast(di, shifted);
  return hn::Add(r, hn::NegMulAdd(n, hn::Set(d, 0x1.3198a2e037073p-69), error));
}

// sin(r) for |r| <= pi/4.
template <class D, class V>
HWY_INLINE V SinReduced(D d, V r) {
  const V t = hn::Mul(r, r);
  const V p = Polynomial(d, t, -1.666665524e-01f, 8.332154714e-03f, -1.951408485e-04f);
  return hn::MulAdd(hn::Mul(r, t), p, r);
}

template <DoubleTag D, class V>
HWY_INLINE V SinReduced(D d, V r) {
  const V t = hn::Mul(r, r);
  const V p = Polynomial(d, t, -0.1666666666666663, 0.008333333333321868, -0.00019841269829352912,
                         2.7557313528130923e-06, -2.5050731614244263e-08, 1.589521373506069e-10);
  return hn::MulAdd(hn::Mul(r, t), p, r);
}

// cos(r) for |r| <= pi/4.
template <class D, class V>
HWY_INLINE V CosReduced(D d, V r) {
  const V t = hn::Mul(r, r);
  const V p = Polynomial(d, t, 4.166664556e-02f, -1.388733741e-03f, 2.443484664e-05f);
  const V y = hn::NegMulAdd(hn::Set(d, 0.5f), t, hn::Set(d, 1.0f));
  return hn::MulAdd(hn::Mul(t, t), p, y);
}

template <DoubleTag D, class V>
HWY_INLINE V CosReduced(D d, V r) {
  const V t = hn::Mul(r, r);
  const V p = Polynomial(d, t, 0.041666666666666595, -0.0013888888888873387, 2.4801587289001683e-05,
                         -2.75573142080691e-07, 2.0875702980290447e-09, -1.1358564279468466e-11);
  const V one = hn::Set(d, 1.0);
  const V half = hn::Mul(hn::Set(d, 0.5), t);
  const V near = hn::Sub(one, half);
  // What `near` was rounded by.
  const V error = hn::Sub(hn::Sub(one, near), half);
  return hn::Add(near, hn::MulAdd(hn::Mul(t, t), p, error));
}

// `y`, or function(x) where |x| is too large for ReduceAngle or infinite.
template <class D, class V>
HWY_INLINE V ReplaceLargeAngles(D d, V x, V y, double (*function)(double)) {
  using T = hn::TFromD<D>;
  const auto large = hn::Gt(hn::Abs(x), hn::Set(d, kMaxReducibleAngle<T>));
  if (HWY_LIKELY(hn::AllFalse(d, large))) return y;
  HWY_ALIGN T angles[HWY_MAX_BYTES / sizeof(T)];
  HWY_ALIGN T results[HWY_MAX_BYTES / sizeof(T)];
  hn::Store(x, d, angles);
  hn::Store(y, d, results);
  for (size_t i = 0; i < hn::Lanes(d); ++i) {
    if (std::abs(angles[i]) > kMaxReducibleAngle<T>) {
      results[i] = static_cast<T>(function(static_cast<double>(angles[i])));
    }
  }
  return hn::Load(d, results);
}

// Near zero x, so that its sign is kept; elsewhere y.
template <class D, class V>
HWY_INLINE V IdentityNearZero(D d, V x, V y) {
  using T = hn::TFromD<D>;
  constexpr T kNear = sizeof(T) == sizeof(float) ? T{1e-4f} : T{1e-9f};
  return hn::IfThenElse(hn::Lt(hn::Abs(x), hn::Set(d, kNear)), x, y);
}

// sin(r + quadrant pi/2).
template <class D, class V, class VI>
HWY_INLINE V SinOfQuadrant(D d, V r, VI quadrant) {
  const hn::RebindToSigned<D> di;
  const auto odd = hn::RebindMask(d, hn::TestBit(quadrant, hn::Set(di, 1)));
  const V y = hn::IfThenElse(odd, CosReduced(d, r), SinReduced(d, r));
  constexpr int kToSign = 8 * sizeof(hn::TFromD<D>) - 2;
  const auto sign = hn::ShiftLeft<kToSign>(hn::And(quadrant, hn::Set(di, 2)));
  return hn::Xor(y, hn::BitCast(d, sign));
}

// Max error: 3 ULP.
template <class D, class V>
HWY_INLINE V Sin(D d, V x) {
  hn::Vec<hn::RebindToSigned<D>> quadrant;
  const V r = ReduceAngle(d, x, quadrant);
  const V y = IdentityNearZero(d, x, SinOfQuadrant(d, r, quadrant));
  return ReplaceLargeAngles(d, x, y, [](double a) { return std::sin(a); });
}

// Max error: 3 ULP.
template <class D, class V>
HWY_INLINE V Cos(D d, V x) {
  const hn::RebindToSigned<D> di;
  hn::Vec<decltype(di)> quadrant;
  const V r = ReduceAngle(d, x, quadrant);
  const V y = SinOfQuadrant(d, r, hn::Add(quadrant, hn::Set(di, 1)));
  return ReplaceLargeAngles(d, x, y, [](double a) { return std::cos(a); });
}

// Max error: 4 ULP.
template <class D, class V>
HWY_INLINE V Tan(D d, V x) {
  const hn::RebindToSigned<D> di;
  hn::Vec<decltype(di)> quadrant;
  const V r = ReduceAngle(d, x, quadrant);
  const V sin = SinReduced(d, r);
  const V cos = CosReduced(d, r);
  const auto odd = hn::RebindMask(d, hn::TestBit(quadrant, hn::Set(di, 1)));
  const V y = hn::Div(hn::IfThenElse(odd, hn::Neg(cos), sin), hn::IfThenElse(odd, sin, cos));
  return ReplaceLargeAngles(d, x, IdentityNearZero(d, x, y), [](double a) { return std::tan(a); });
}

// asin(x) for |x| <= 1/2, given t = x^2.
template <class D, class V>
HWY_INLINE V AsinReduced(D d, V x, V t) {
  const V p = Polynomial(d, t, 1.666675359e-01f, 7.495241612e-02f, 4.547709972e-02f,
                         2.414760552e-02f, 4.221856222e-02f);
  return hn::MulAdd(hn::Mul(x, t), p, x);
}

// asin(sqrt(t)) with t = (1 - |x|) / 2 where |x| > 1/2, which is `large`; else asin(|x|).
template <class D, class V>
HWY_INLINE V AsinOfHalfAngle(D d, V x, hn::Mask<D>& large) {
  const V a = hn::Abs(x);
  const V half = hn::Set(d, 0.5f);
  large = hn::Gt(a, half);
  const V t = hn::IfThenElse(large, hn::NegMulAdd(half, a, half), hn::Mul(a, a));
  return AsinReduced(d, hn::IfThenElse(large, hn::Sqrt(t), a), t);
}

// Max error: 3 ULP.
template <class D, class V>
HWY_INLINE V Asin(D d, V x) {
  hn::Mask<D> large;
  const V asin = AsinOfHalfAngle(d, x, large);
  const V far = hn::NegMulAdd(hn::Set(d, 2.0f), asin, hn::Set(d, 1.57079637f));
  return hn::CopySignToAbs(hn::IfThenElse(large, far, asin), x);
}

// Max error: 3 ULP.
template <class D, class V>
HWY_INLINE V Acos(D d, V x) {
  hn::Mask<D> large;
  const V asin = AsinOfHalfAngle(d, x, large);
  const auto negative = hn::Lt(x, hn::Zero(d));
  const V twice = hn::Add(asin, asin);
  // pi and pi/2 less their float values: they matter where the difference is small.
  const V above = hn::Sub(hn::Set(d, 3.14159274f), hn::Add(twice, hn::Set(d, 8.74227766e-8f)));
  const V far = hn::IfThenElse(negative, above, twice);
  const V rest = hn::Add(hn::CopySignToAbs(asin, x), hn::Set(d, 4.37113883e-8f));
  const V near = hn::Sub(hn::Set(d, 1.57079637f), rest);
  return hn::IfThenElse(large, far, near);
}

// Max error: 3 ULP.
template <class D, class V>
HWY_INLINE V Atan(D d, V x) {
  const V a = hn::Abs(x);
  const V one = hn::Set(d, 1.0f);
  const auto above_first = hn::Gt(a, hn::Set(d, 0.414213562f));   // tan(pi / 8)
  const auto above_second = hn::Gt(a, hn::Set(d, 2.414213562f));  // tan(3 pi / 8)
  // atan(a) = base + atan(numerator / denominator) with a quotient in [-tan(pi/8), tan(pi/8)].
  const V numerator = hn::IfThenElse(above_second, hn::Set(d, -1.0f),
                                     hn::IfThenElse(above_first, hn::Sub(a, one), a));
  const V denominator =
      hn::IfThenElse(above_second, a, hn::IfThenElse(above_first, hn::Add(a, one), one));
  const V base = hn::IfThenElse(above_second, hn::Set(d, 1.57079637f),
                                hn::IfThenElseZero(above_first, hn::Set(d, 0.785398163f)));
  const V q = hn::Div(numerator, denominator);
  const V t = hn::Mul(q, q);
  const V p = Polynomial(d, t, -3.333331645e-01f, 1.999848932e-01f, -1.424384862e-01f,
                         1.059600264e-01f, -6.083455682e-02f);
  const V y = hn::Add(base, hn::MulAdd(hn::Mul(q, t), p, q));
  return hn::CopySignToAbs(y, x);
}

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
