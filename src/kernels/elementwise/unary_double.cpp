#include <algorithm>
#include <cmath>

#include "kernels/elementwise/elementwise.h"

namespace tenon::kernels {
namespace {

// min(max(x, low), high), but NaN for NaN.
double Clamped(double x, double low, double high) { return std::min(std::max(x, low), high); }

double Sigmoid(double x) {
  const double z = std::exp(-std::abs(x));
  return (x < 0 ? z : 1) / (1 + z);
}

double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::abs(x))); }

// x tanh(softplus(x)), which is x q / (q + 2) with q = e^x (e^x + 2).
double Mish(double x) {
  // Above 20 the quotient rounds to 1.
  const double e = std::exp(std::min(x, 20.0));
  const double q = e * (e + 2);
  return x * (q / (q + 2));
}

constexpr double kSqrtHalf = 0.70710678118654752440;

// x (1 + tanh(u)) / 2 with u = sqrt(2 / pi) (x + 0.044715 x^3) is x sigmoid(2 u), which does not
// cancel below 0.
double GeluTanh(double x) {
  constexpr double kTwoSqrtTwoOverPi = 1.59576912160573071176;
  return x * Sigmoid(kTwoSqrtTwoOverPi * x * (1 + 0.044715 * x * x));
}

template <class F>
void Map(const double* x, double* y, size_t n, F f) {
  for (size_t i = 0; i < n; ++i) y[i] = f(x[i]);
}

}  // namespace

void ApplyInDouble(UnaryOp op, const double* x, double* y, size_t n, [[maybe_unused]] double a,
                   [[maybe_unused]] double b) {
  switch (op) {
#define UNARY_FUNCTION(name, parameters, traits, on_vectors, on_doubles) \
  case UnaryOp::k##name:                                                 \
    return Map(x, y, n, [=](double x) -> double { return on_doubles; });
#include "base/unary_functions.inc"
  }
}

}  // namespace tenon::kernels
