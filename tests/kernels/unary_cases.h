// What each function of base/unary_functions.inc computes, in long double: one case for each, which
// the tests of its kernels, of its operator and of everything that it is fused with share.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "base/unary_functions.h"

namespace tenon {

// How far a result may be from the exact one: some units in the last place of its type, and where
// the function cancels, some machine epsilons beside.
struct UnaryTolerance {
  double ulp = 0;
  double epsilons = 0;
};

struct UnaryCase {
  UnaryOp op;
  long double (*reference)(long double x, long double a, long double b);
  double low, high;  // arguments; infinities, zeros and NaN are tried as well
  UnaryTolerance in_float, in_double;
  float a = 0, b = 0;  // parameters
};

namespace unary_reference {

using Long = long double;

inline Long Clamp(Long x, Long low, Long high) {
  return std::isnan(x) ? x : std::min(std::max(x, low), high);
}
inline Long Times(Long a, Long x) { return a * x; }
inline Long Sigmoid(Long x) { return 1 / (1 + std::exp(-x)); }
inline Long Softplus(Long x) { return x > 0 ? x - std::log(Sigmoid(x)) : std::log1p(std::exp(x)); }
inline Long Elu(Long x, Long a) { return x < 0 ? a * std::expm1(x) : x; }
inline Long Gelu(Long x) { return x / 2 * std::erfc(-x / std::numbers::sqrt2_v<Long>); }
inline Long GeluTanh(Long x) {
  return Sigmoid(std::sqrt(8 / std::numbers::pi_v<Long>) * (x + 0.044715L * x * x * x)) * x;
}

constexpr UnaryTolerance Exactly() { return {}; }
constexpr UnaryTolerance Ulp(double ulp, double epsilons = 0) { return {ulp, epsilons}; }
// Of one rounding. That to long double comes before it.
constexpr UnaryTolerance Rounded() { return Ulp(0.51); }

#define CASE(name, expression, ...)                                                             \
  {                                                                                             \
    UnaryOp::k##name,                                                                           \
        []([[maybe_unused]] Long x, [[maybe_unused]] Long a, [[maybe_unused]] Long b) -> Long { \
          return expression;                                                                    \
        },                                                                                      \
        __VA_ARGS__                                                                             \
  }

// In the order of UnaryOp: name, formula, range, tolerances of float and of double, parameters.
// They are what kernels/math-inl.h and its neighbours state, and where double has no code there,
// what the C library errs by, with the roundings of the formula.
inline const UnaryCase kCases[] = {
    CASE(Identity, x, -9, 9, Exactly(), Exactly()),
    CASE(Abs, std::copysign(x, 1.0L), -9, 9, Exactly(), Exactly()),
    CASE(Neg, 0 - x, -9, 9, Exactly(), Exactly()),
    CASE(Sign, std::isnan(x) ? x : (x > 0) - (x < 0), -1, 1, Exactly(), Exactly()),
    CASE(Floor, std::floor(x), -9, 9, Exactly(), Exactly()),
    CASE(Ceil, std::ceil(x), -9, 9, Exactly(), Exactly()),
    CASE(Round, std::rint(x), -9, 9, Exactly(), Exactly()),
    CASE(Sqrt, std::sqrt(x), -1, 99, Rounded(), Rounded()),
    CASE(Reciprocal, 1 / x, -9, 9, Rounded(), Rounded()),

    CASE(Exp, std::exp(x), -20, 20, Ulp(1.2), Ulp(1)),
    CASE(Log, std::log(x), -1, 99, Ulp(1), Ulp(1)),
    CASE(Erf, std::erf(x), -5, 5, Ulp(8), Ulp(1.5)),
    CASE(Sin, std::sin(x), -99, 99, Ulp(2), Ulp(1.5)),
    CASE(Cos, std::cos(x), -99, 99, Ulp(2), Ulp(1.5)),
    CASE(Tan, std::tan(x), -99, 99, Ulp(4), Ulp(3)),
    CASE(Asin, std::asin(x), -1.1, 1.1, Ulp(3), Ulp(1)),
    CASE(Acos, std::acos(x), -1.1, 1.1, Ulp(3), Ulp(1)),
    CASE(Atan, std::atan(x), -9, 9, Ulp(3), Ulp(1)),
    CASE(Sinh, std::sinh(x), -9, 9, Ulp(3), Ulp(2)),
    CASE(Cosh, std::cosh(x), -9, 9, Ulp(2), Ulp(2)),
    CASE(Asinh, std::asinh(x), -9, 9, Ulp(3), Ulp(2)),
    CASE(Acosh, std::acosh(x), 0, 9, Ulp(3), Ulp(2)),
    CASE(Atanh, std::atanh(x), -2, 2, Ulp(3), Ulp(2)),

    CASE(Clip, Clamp(x, a, b), -9, 9, Exactly(), Exactly(), -2.5f, 3.5f),
    CASE(Relu, x < 0 ? 0 : x, -9, 9, Exactly(), Exactly()),
    CASE(LeakyRelu, x < 0 ? a * x : x, -9, 9, Rounded(), Rounded(), 0.01f),
    CASE(ThresholdedRelu, x > a ? x : 0, -9, 9, Exactly(), Exactly(), 1.5f),
    // Where a x is near -b, its rounding remains.
    CASE(Affine, b + a * x, -9, 9, Ulp(0.51, 2), Ulp(0.51, 2), 0.7f, -1.1f),
    CASE(HardSigmoid, Clamp(b + a * x, 0, 1), -5, 5, Ulp(0.51, 0.25), Ulp(0.51, 0.25), 0.2f, 0.5f),
    CASE(HardSwish, Clamp(x / 6 + 0.5L, 0, 1) * x, -5, 5, Ulp(2, 1), Ulp(2, 1)),
    CASE(Softsign, x / (1 + std::abs(x)), -9, 9, Ulp(1.5), Ulp(1.5)),

    CASE(Elu, Elu(x, a), -9, 9, Ulp(3), Ulp(2), 0.7f),
    CASE(Selu, Elu(x, a) * b, -9, 9, Ulp(4), Ulp(3), 1.6732632f, 1.0507010f),
    CASE(Celu, Elu(x / a, 1) * a, -9, 9, Ulp(4), Ulp(3), 2.5f),
    CASE(Tanh, std::tanh(x), -9, 9, Ulp(7), Ulp(2)),
    CASE(ScaledTanh, std::tanh(Times(b, x)) * a, -9, 9, Ulp(9), Ulp(4), 1.7f, 0.7f),
    CASE(Softplus, Softplus(x), -40, 40, Ulp(2), Ulp(2)),
    // exp multiplies the relative error of its argument by that argument.
    CASE(ParametricSoftplus, Softplus(Times(b, x)) * a, -9, 9, Ulp(9), Ulp(9), 1.7f, 0.7f),
    CASE(Sigmoid, Sigmoid(x), -9, 9, Ulp(3), Ulp(2.5)),
    CASE(Swish, Sigmoid(Times(a, x)) * x, -9, 9, Ulp(12), Ulp(12), 1.702f),
    CASE(Mish, std::tanh(std::log1p(std::exp(x))) * x, -30, 30, Ulp(5), Ulp(4)),
    // erfc multiplies that of its argument t by 2 t^2. In float, 1 + erf cancels below 0.
    CASE(Gelu, Gelu(x), -6, 6, Ulp(4, 8), Ulp(80)),
    CASE(GeluTanh, GeluTanh(x), -6, 6, Ulp(60), Ulp(60)),
};
#undef CASE
static_assert(std::size(kCases) == kUnaryOpCount, "each function needs a case");

}  // namespace unary_reference

inline constexpr const auto& kUnaryCases = unary_reference::kCases;
inline const UnaryCase& CaseOf(UnaryOp op) { return kUnaryCases[static_cast<size_t>(op)]; }

// How many tolerances `got` is away from the exact result: 0 if it is the nearest number, or both
// are NaN. Up to 1 is near enough.
template <class T>
double ErrorOf(T got, long double exact, const UnaryTolerance& tolerance) {
  constexpr double kFar = std::numeric_limits<double>::infinity();
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kFar;
  const auto nearest = static_cast<T>(exact);
  if (got == nearest) return 0;
  if (std::isnan(got) || std::isinf(got) || std::isinf(nearest)) return kFar;
  const T magnitude = std::abs(nearest);
  const T ulp = std::nextafter(magnitude, std::numeric_limits<T>::infinity()) - magnitude;
  const long double allowed =
      static_cast<long double>(tolerance.ulp) * ulp +
      static_cast<long double>(tolerance.epsilons) * std::numeric_limits<T>::epsilon();
  return static_cast<double>(std::abs(static_cast<long double>(got) - exact) / allowed);
}

template <class T>
const UnaryTolerance& ToleranceOf(const UnaryCase& test) {
  return sizeof(T) == sizeof(float) ? test.in_float : test.in_double;
}

}  // namespace tenon
