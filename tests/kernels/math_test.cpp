// Measures the error of every function of math-inl.h against <cmath> in double, on every target.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/math_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/dispatch.h"
#include "kernels/elementwise/hyperbolic-inl.h"
#include "kernels/elementwise/pow-inl.h"
#include "kernels/elementwise/trigonometry-inl.h"
#include "kernels/math-inl.h"
#include "kernels/partial-inl.h"

#ifndef TENON_TESTS_KERNELS_MATH_TEST_ONCE
#define TENON_TESTS_KERNELS_MATH_TEST_ONCE
namespace tenon::kernels {
using VectorFunction = void (*)(const float* x, float* y, size_t n);
enum MathFunction {
  kExp,
  kExpm1,
  kLog,
  kLog1p,
  kTanh,
  kErf,
  kSigmoid,
  kSoftplus,
  kSqrt,
  kSin,
  kCos,
  kTan,
  kAsin,
  kAcos,
  kAtan,
  kSinh,
  kCosh,
  kAsinh,
  kAcosh,
  kAtanh,
  kCount
};
struct MathTestTable {
  VectorFunction functions[kCount];
  void (*pow)(const float* x, const float* y, float* z, size_t n);
};
}  // namespace tenon::kernels
#endif

HWY_BEFORE_NAMESPACE();
namespace tenon::kernels {
namespace HWY_NAMESPACE {

#define TENON_MAP(Name)                                      \
  void Map##Name(const float* x, float* y, size_t n) {       \
    const hn::ScalableTag<float> d;                          \
    const size_t lanes = hn::Lanes(d);                       \
    size_t i = 0;                                            \
    for (; i + lanes <= n; i += lanes) {                     \
      hn::StoreU(Name(d, hn::LoadU(d, x + i)), d, y + i);    \
    }                                                        \
    const auto tail = Name(d, LoadPartial(d, x + i, n - i)); \
    StorePartial(tail, d, y + i, n - i);                     \
  }
TENON_MAP(Exp)
TENON_MAP(Expm1)
TENON_MAP(Log)
TENON_MAP(Log1p)
TENON_MAP(Tanh)
TENON_MAP(Erf)
TENON_MAP(Sigmoid)
TENON_MAP(Softplus)
TENON_MAP(Sqrt)
TENON_MAP(Sin)
TENON_MAP(Cos)
TENON_MAP(Tan)
TENON_MAP(Asin)
TENON_MAP(Acos)
TENON_MAP(Atan)
TENON_MAP(Sinh)
TENON_MAP(Cosh)
TENON_MAP(Asinh)
TENON_MAP(Acosh)
TENON_MAP(Atanh)
#undef TENON_MAP

void MapPow(const float* x, const float* y, float* z, size_t n) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < n; i += lanes) {
    const size_t m = HWY_MIN(lanes, n - i);
    StorePartial(Pow(d, LoadPartial(d, x + i, m), LoadPartial(d, y + i, m)), d, z + i, m);
  }
}

const MathTestTable kMathTestTable = {
    {MapExp,      MapExpm1, MapLog,  MapLog1p, MapTanh,  MapErf,  MapSigmoid,
     MapSoftplus, MapSqrt,  MapSin,  MapCos,   MapTan,   MapAsin, MapAcos,
     MapAtan,     MapSinh,  MapCosh, MapAsinh, MapAcosh, MapAtanh},
    MapPow};

}  // namespace HWY_NAMESPACE
}  // namespace tenon::kernels
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace tenon::kernels {
namespace {

// A prime, so that all low bits of the mantissa occur.
constexpr uint64_t kBitPatternStride = 16411;

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

struct MathCase {
  const char* name;
  MathFunction function;
  double (*reference)(double);
  double max_ulp;
};

double SigmoidReference(double x) { return 1 / (1 + std::exp(-x)); }
// Not every C library returns NaN everywhere below 1.
double AcoshReference(double x) { return x < 1 ? kNan : std::acosh(x); }
double SoftplusReference(double x) {
  return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
}

const MathCase kMathCases[] = {
    {"Exp", kExp, std::exp, 1.2},
    {"Expm1", kExpm1, std::expm1, 2},
    {"Log", kLog, std::log, 1},
    {"Log1p", kLog1p, std::log1p, 2},
    {"Tanh", kTanh, std::tanh, 7},
    {"Erf", kErf, std::erf, 8},
    {"Sigmoid", kSigmoid, SigmoidReference, 3},
    {"Softplus", kSoftplus, SoftplusReference, 2},
    {"Sqrt", kSqrt, std::sqrt, 0.5},
    {"Sin", kSin, std::sin, 3},
    {"Cos", kCos, std::cos, 3},
    {"Tan", kTan, std::tan, 4},
    {"Asin", kAsin, std::asin, 3},
    {"Acos", kAcos, std::acos, 3},
    {"Atan", kAtan, std::atan, 3},
    {"Sinh", kSinh, std::sinh, 3},
    {"Cosh", kCosh, std::cosh, 2},
    {"Asinh", kAsinh, std::asinh, 3},
    {"Acosh", kAcosh, AcoshReference, 3},
    {"Atanh", kAtanh, std::atanh, 3},
};

// |got - expected| in units of the last place of the float nearest to `expected`.
// Zeros and infinities must have the right sign.
double UlpError(float got, double expected) {
  const float nearest = static_cast<float>(expected);
  if (std::isnan(nearest)) return std::isnan(got) ? 0 : 1e30;
  if (std::isinf(nearest) || nearest == 0) {
    return got == nearest && std::signbit(got) == std::signbit(nearest) ? 0 : 1e30;
  }
  if (std::isnan(got) || std::isinf(got)) return 1e30;
  const double ulp = std::ldexp(1.0, std::max(std::ilogb(expected), -126) - 23);
  return std::abs(got - expected) / ulp;
}

uint32_t Bits(float x) { return std::bit_cast<uint32_t>(x); }

// Floats of every magnitude and both signs, evenly spread over the bit patterns, and special ones.
std::vector<float> Samples() {
  std::vector<float> samples = {0.0f,
                                -0.0f,
                                kInf,
                                -kInf,
                                kNan,
                                1.0f,
                                -1.0f,
                                1e-45f,
                                -1e-45f,
                                88.72283f,
                                88.72284f,
                                -103.97f,
                                -104.0f,
                                -87.34f,
                                std::numeric_limits<float>::max(),
                                std::numeric_limits<float>::lowest(),
                                std::numeric_limits<float>::min()};
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += kBitPatternStride) {
    samples.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  }
  for (int i = -1; i <= 300; ++i) samples.push_back(static_cast<float>(i) * 1.57079632679f);
  // The range where the functions are neither linear nor saturated.
  for (int i = -200000; i <= 200000; ++i) samples.push_back(static_cast<float>(i) * 5.3e-4f);
  return samples;
}

class MathTest : public testing::Test {
 protected:
  ~MathTest() override { SetActiveTarget(SupportedTargets().back()); }
};

const MathTestTable& Table() { return TENON_SELECT_TABLE(MathTestTable, kMathTestTable); }

TEST_F(MathTest, ErrorIsWithinTheStatedUlpOnEveryTarget) {
  const std::vector<float> x = Samples();
  std::vector<float> y(x.size());
  for (const Target target : SupportedTargets()) {
    SetActiveTarget(target);
    for (const MathCase& test : kMathCases) {
      Table().functions[test.function](x.data(), y.data(), x.size());
      double worst = 0;
      size_t where = 0;
      for (size_t i = 0; i < x.size(); ++i) {
        const double error = UlpError(y[i], test.reference(x[i]));
        if (error > worst) {
          worst = error;
          where = i;
        }
      }
      EXPECT_LE(worst, test.max_ulp)
          << test.name << " on " << TargetName(target) << " at x = " << x[where] << ": expected "
          << test.reference(x[where]) << ", got " << y[where];
      RecordProperty(test.name, std::to_string(worst));
    }
  }
}

TEST_F(MathTest, PowMatchesTheReferenceOnEveryTarget) {
  const float special[] = {0.0f,        -0.0f,        1.0f,     -1.0f,    2.0f,   -2.0f,
                           0.5f,        -0.5f,        3.0f,     -3.0f,    kInf,   -kInf,
                           kNan,        1e-40f,       -1e-40f,  3e38f,    -3e38f, 16777215.0f,
                           16777217.0f, -16777215.0f, 1.00001f, 0.99999f, 1e20f,  -2.5f};
  std::vector<float> x, y;
  for (const float a : special) {
    for (const float b : special) {
      x.push_back(a);
      y.push_back(b);
    }
  }
  // Bases of every magnitude, with exponents that reach from underflow to overflow.
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 40'009) {
    const float base = std::bit_cast<float>(bits);
    x.push_back(base);
    y.push_back(static_cast<float>((static_cast<double>(bits % 1009) / 504 - 1) * 150 /
                                   std::abs(std::log2(base))));
    x.push_back(0.5f + static_cast<float>(bits % 100'003) / 100'003);
    y.push_back(static_cast<float>(bits % 20'011) / 100 - 100);
  }
  std::vector<float> z(x.size());
  for (const Target target : SupportedTargets()) {
    SetActiveTarget(target);
    Table().pow(x.data(), y.data(), z.data(), x.size());
    double worst = 0;
    size_t where = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double error = UlpError(z[i], std::pow(static_cast<double>(x[i]), y[i]));
      if (error > worst) {
        worst = error;
        where = i;
      }
    }
    EXPECT_LE(worst, 4) << TargetName(target) << ": " << x[where] << " ^ " << y[where] << ", got "
                        << z[where];
    RecordProperty("Pow", std::to_string(worst));
  }
}

TEST_F(MathTest, KeepsTheSignOfZero) {
  for (const Target target : SupportedTargets()) {
    SetActiveTarget(target);
    for (const MathFunction f :
         {kExpm1, kLog1p, kTanh, kErf, kSqrt, kSin, kTan, kAsin, kAtan, kSinh, kAsinh, kAtanh}) {
      const float x[2] = {-0.0f, 0.0f};
      float y[2] = {1, 1};
      Table().functions[f](x, y, 2);
      EXPECT_TRUE(y[0] == 0 && std::signbit(y[0])) << f << " on " << TargetName(target);
      EXPECT_TRUE(y[1] == 0 && !std::signbit(y[1])) << f << " on " << TargetName(target);
    }
  }
}

TEST_F(MathTest, BitsDoNotDependOnThePosition) {
  for (const Target target : SupportedTargets()) {
    SetActiveTarget(target);
    for (const MathCase& test : kMathCases) {
      std::vector<float> x(67);
      for (size_t i = 0; i < x.size(); ++i) x[i] = 0.37f * static_cast<float>(i) + 0.01f;
      std::vector<float> whole(x.size());
      Table().functions[test.function](x.data(), whole.data(), x.size());
      for (size_t begin = 0; begin < x.size(); ++begin) {
        for (size_t n = 0; n <= x.size() - begin; n += 5) {
          std::vector<float> part(n + 1, -7.0f);
          Table().functions[test.function](x.data() + begin, part.data(), n);
          EXPECT_EQ(part[n], -7.0f) << test.name << " wrote past the end";
          for (size_t i = 0; i < n; ++i)
            ASSERT_EQ(Bits(part[i]), Bits(whole[begin + i])) << test.name;
        }
      }
    }
  }
}

}  // namespace
}  // namespace tenon::kernels
#endif  // HWY_ONCE
