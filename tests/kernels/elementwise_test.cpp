#include "kernels/elementwise/elementwise.h"

#include <algorithm>
#include <limits>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr size_t kLengths[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 67, 1000};

using ElementwiseTest = TargetTest;

double SigmoidOf(double x) { return 1 / (1 + std::exp(-x)); }
double Clamp01(double x) { return std::isnan(x) ? x : std::min(std::max(x, 0.0), 1.0); }

struct UnaryCase {
  const char* name;
  UnaryOp op;
  double (*reference)(double x, double a, double b);
  float low, high;
  float a = 0, b = 0;
  double rtol = 1e-6, atol = 0;
  bool special = true;  // also tried on infinities, zeros and NaN
};

// One row for every operator, in the order of UnaryOp.
const UnaryCase kUnaryCases[] = {
    {"Abs", UnaryOp::kAbs, [](double x, double, double) { return std::abs(x); }, -9, 9},
    {"Neg", UnaryOp::kNeg, [](double x, double, double) { return -x; }, -9, 9},
    {"Sign", UnaryOp::kSign, [](double x, double, double) { return x > 0   ? 1
                                                                   : x < 0 ? -1
                                                                           : x; },
     -1, 1},
    {"Floor", UnaryOp::kFloor, [](double x, double, double) { return std::floor(x); }, -9, 9},
    {"Ceil", UnaryOp::kCeil, [](double x, double, double) { return std::ceil(x); }, -9, 9},
    {"Round", UnaryOp::kRound, [](double x, double, double) { return std::nearbyint(x); }, -9, 9},
    {"Sqrt", UnaryOp::kSqrt, [](double x, double, double) { return std::sqrt(x); }, -1, 99},
    {"Square", UnaryOp::kSquare, [](double x, double, double) { return x * x; }, -9, 9},
    {"Reciprocal", UnaryOp::kReciprocal, [](double x, double, double) { return 1 / x; }, -9, 9},
    {"Rsqrt", UnaryOp::kRsqrt, [](double x, double, double) { return 1 / std::sqrt(x); }, 0, 9},
    {"Exp", UnaryOp::kExp, [](double x, double, double) { return std::exp(x); }, -20, 20},
    {"Expm1", UnaryOp::kExpm1, [](double x, double, double) { return std::expm1(x); }, -9, 9},
    {"Log", UnaryOp::kLog, [](double x, double, double) { return std::log(x); }, -1, 99},
    {"Log1p", UnaryOp::kLog1p, [](double x, double, double) { return std::log1p(x); }, -2, 9},
    {"Erf", UnaryOp::kErf, [](double x, double, double) { return std::erf(x); }, -5, 5},
    {"Sin", UnaryOp::kSin, [](double x, double, double) { return std::sin(x); }, -99, 99},
    {"Cos", UnaryOp::kCos, [](double x, double, double) { return std::cos(x); }, -99, 99},
    {"Tan", UnaryOp::kTan, [](double x, double, double) { return std::tan(x); }, -99, 99},
    {"Asin", UnaryOp::kAsin, [](double x, double, double) { return std::asin(x); }, -1.1f, 1.1f},
    {"Acos", UnaryOp::kAcos, [](double x, double, double) { return std::acos(x); }, -1.1f, 1.1f},
    {"Atan", UnaryOp::kAtan, [](double x, double, double) { return std::atan(x); }, -9, 9},
    {"Sinh", UnaryOp::kSinh, [](double x, double, double) { return std::sinh(x); }, -9, 9},
    {"Cosh", UnaryOp::kCosh, [](double x, double, double) { return std::cosh(x); }, -9, 9},
    {"Tanh", UnaryOp::kTanh, [](double x, double, double) { return std::tanh(x); }, -9, 9},
    {"Asinh", UnaryOp::kAsinh, [](double x, double, double) { return std::asinh(x); }, -9, 9},
    {"Acosh", UnaryOp::kAcosh, [](double x, double, double) { return std::acosh(x); }, 0, 9},
    {"Atanh", UnaryOp::kAtanh, [](double x, double, double) { return std::atanh(x); }, -2, 2},
    {"Sigmoid", UnaryOp::kSigmoid, [](double x, double, double) { return SigmoidOf(x); }, -9, 9},
    {"HardSigmoid", UnaryOp::kHardSigmoid,
     [](double x, double a, double b) { return Clamp01(a * x + b); }, -5, 5, 0.2f, 0.5f, 0, 2e-7},
    {"HardSwish", UnaryOp::kHardSwish,
     [](double x, double, double) { return x * Clamp01(x / 6 + 0.5); }, -5, 5, 0, 0, 1e-6, 1e-6},
    {"Relu", UnaryOp::kRelu, [](double x, double, double) { return x < 0 ? 0 : x; }, -9, 9},
    {"LeakyRelu", UnaryOp::kLeakyRelu, [](double x, double a, double) { return x < 0 ? a * x : x; },
     -9, 9, 0.01f},
    {"ThresholdedRelu", UnaryOp::kThresholdedRelu,
     [](double x, double a, double) { return x > a ? x : 0; }, -9, 9, 1.5f},
    {"Elu", UnaryOp::kElu, [](double x, double a, double) { return x < 0 ? a * std::expm1(x) : x; },
     -9, 9, 0.7f},
    {"Selu", UnaryOp::kSelu,
     [](double x, double a, double b) { return b * (x < 0 ? a * std::expm1(x) : x); }, -9, 9,
     1.6732632f, 1.0507010f},
    {"Celu", UnaryOp::kCelu,
     [](double x, double a, double) { return x < 0 ? a * std::expm1(x / a) : x; }, -9, 9, 2.5f},
    {"Softplus", UnaryOp::kSoftplus,
     [](double x, double, double) {
       return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
     },
     -40, 40},
    {"Softsign", UnaryOp::kSoftsign, [](double x, double, double) { return x / (1 + std::abs(x)); },
     -9, 9},
    // The sum 1 + erf(x) cancels for negative x.
    {"Gelu", UnaryOp::kGelu,
     [](double x, double, double) { return x / 2 * (1 + std::erf(x / std::sqrt(2.0))); }, -6, 6, 0,
     0, 1e-6, 1e-6, false},
    {"GeluTanh", UnaryOp::kGeluTanh,
     [](double x, double, double) {
       return x / 2 * (1 + std::tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
     },
     -6, 6, 0, 0, 1e-6, 1e-7, false},
    {"Silu", UnaryOp::kSilu, [](double x, double, double) { return x * SigmoidOf(x); }, -9, 9},
    {"Swish", UnaryOp::kSwish, [](double x, double a, double) { return x * SigmoidOf(a * x); }, -9,
     9, 1.702f, 0, 2e-6},
    {"Mish", UnaryOp::kMish,
     [](double x, double, double) { return x * std::tanh(std::log1p(std::exp(x))); }, -30, 30},
    {"Clip", UnaryOp::kClip,
     [](double x, double a, double b) { return std::isnan(x) ? x : std::min(b, std::max(a, x)); },
     -9, 9, -2.5f, 3.5f},
};
static_assert(std::size(kUnaryCases) == kUnaryOpCount);

void ExpectUnary(const UnaryCase& test, const std::vector<float>& x, const std::vector<float>& y) {
  for (size_t i = 0; i < x.size(); ++i) {
    const double expected = test.reference(x[i], test.a, test.b);
    ASSERT_TRUE(IsNear(y[i], expected, test.rtol, test.atol))
        << test.name << "(" << x[i] << ") at " << i << " of " << x.size() << ": expected "
        << expected << ", got " << y[i];
  }
}

TEST_F(ElementwiseTest, UnaryMatchesReferenceAtEveryLengthOnEveryTarget) {
  OnEveryTarget([] {
    for (const UnaryCase& test : kUnaryCases) {
      ASSERT_EQ(static_cast<size_t>(test.op), static_cast<size_t>(&test - kUnaryCases));
      Random random(7);
      for (const size_t n : kLengths) {
        const std::vector<float> x = random.Floats(n, test.low, test.high);
        std::vector<float> y(n + 1, -77);
        FindUnary(test.op)(x.data(), y.data(), n, test.a, test.b);
        EXPECT_EQ(y[n], -77) << test.name << " wrote past the end";
        y.pop_back();
        ExpectUnary(test, x, y);
        std::vector<float> in_place = x;
        FindUnary(test.op)(in_place.data(), in_place.data(), n, test.a, test.b);
        for (size_t i = 0; i < n; ++i) ASSERT_EQ(Bits(in_place[i]), Bits(y[i])) << test.name;
      }
    }
  });
}

TEST_F(ElementwiseTest, UnaryHandlesSpecialValues) {
  const std::vector<float> x = {kInf, -kInf, kNan, 0.0f, -0.0f, 0.5f, -0.5f, 1.5f, 2.5f, -2.5f};
  OnEveryTarget([&] {
    for (const UnaryCase& test : kUnaryCases) {
      if (!test.special) continue;
      std::vector<float> y(x.size());
      FindUnary(test.op)(x.data(), y.data(), x.size(), test.a, test.b);
      ExpectUnary(test, x, y);
    }
  });
}

template <class T>
struct BinaryCase {
  const char* name;
  BinaryOp op;
  T (*reference)(T a, T b);
};

template <class T>
T PythonMod(T a, T b) {
  const T r = static_cast<T>(std::fmod(static_cast<double>(a), static_cast<double>(b)));
  return r != 0 && (r < 0) != (b < 0) ? static_cast<T>(r + b) : r;
}

template <class T>
const BinaryCase<T> kBinaryCases[] = {
    {"Add", BinaryOp::kAdd, [](T a, T b) { return static_cast<T>(a + b); }},
    {"Sub", BinaryOp::kSub, [](T a, T b) { return static_cast<T>(a - b); }},
    {"Mul", BinaryOp::kMul, [](T a, T b) { return static_cast<T>(a * b); }},
    {"Div", BinaryOp::kDiv, [](T a, T b) { return static_cast<T>(a / b); }},
    {"Mod", BinaryOp::kMod, [](T a, T b) { return PythonMod(a, b); }},
    {"Fmod", BinaryOp::kFmod,
     [](T a, T b) {
       return static_cast<T>(std::fmod(static_cast<double>(a), static_cast<double>(b)));
     }},
    {"Max", BinaryOp::kMax, [](T a, T b) { return a > b ? a : b; }},
    {"Min", BinaryOp::kMin, [](T a, T b) { return a < b ? a : b; }},
    {"PRelu", BinaryOp::kPRelu, [](T a, T b) { return static_cast<T>(a < 0 ? a * b : a); }},
};

struct ComparisonCase {
  const char* name;
  BinaryOp op;
  bool (*reference)(double a, double b);
};
const ComparisonCase kComparisonCases[] = {
    {"Equal", BinaryOp::kEqual, [](double a, double b) { return a == b; }},
    {"Less", BinaryOp::kLess, [](double a, double b) { return a < b; }},
    {"LessOrEqual", BinaryOp::kLessOrEqual, [](double a, double b) { return a <= b; }},
    {"Greater", BinaryOp::kGreater, [](double a, double b) { return a > b; }},
    {"GreaterOrEqual", BinaryOp::kGreaterOrEqual, [](double a, double b) { return a >= b; }},
};

// Small numbers, none of them 0, of both signs where T has them.
template <class T>
std::vector<T> SmallNumbers(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<T> values(n);
  for (T& v : values) {
    v = static_cast<T>(1 + random.Below(11));
    if (std::is_signed_v<T> && random.Below(2)) v = static_cast<T>(-v);
  }
  return values;
}

// Checks the three forms of `op`: y[i] = reference(a[i], b[i]).
template <class T, class R, class F>
void CheckBinary(const char* name, const BinaryFunctions& functions, const std::vector<T>& a,
                 const std::vector<T>& b, F&& reference) {
  const size_t n = a.size() - 1;  // the scalar forms read a[0] and b[0] even if n is 0
  std::vector<R> y(n + 1, R{77});
  functions.vector_vector(a.data(), b.data(), y.data(), n);
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], reference(a[i], b[i])) << name << " at " << i;
  functions.scalar_vector(a.data(), b.data(), y.data(), n);
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], reference(a[0], b[i])) << name << " at " << i;
  functions.vector_scalar(a.data(), b.data(), y.data(), n);
  for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], reference(a[i], b[0])) << name << " at " << i;
  ASSERT_EQ(y[n], R{77}) << name << " wrote past the end";
}

template <class T>
void CheckType(ElementType type) {
  for (const size_t n : kLengths) {
    const auto a = SmallNumbers<T>(n + 1, 1);
    const auto b = SmallNumbers<T>(n + 1, 2);
    for (const auto& test : kBinaryCases<T>) {
      CheckBinary<T, T>(test.name, FindBinary(test.op, type), a, b, test.reference);
    }
    for (const auto& test : kComparisonCases) {
      CheckBinary<T, uint8_t>(test.name, FindBinary(test.op, type), a, b, test.reference);
    }
  }
  EXPECT_EQ(SizeOf(type), sizeof(T));
}

TEST_F(ElementwiseTest, BinaryMatchesReferenceForEveryType) {
  OnEveryTarget([] { CheckType<float>(ElementType::kFloat); });
  CheckType<double>(ElementType::kDouble);
  CheckType<int8_t>(ElementType::kInt8);
  CheckType<int16_t>(ElementType::kInt16);
  CheckType<int32_t>(ElementType::kInt32);
  CheckType<int64_t>(ElementType::kInt64);
  CheckType<uint8_t>(ElementType::kUint8);
  CheckType<uint16_t>(ElementType::kUint16);
  CheckType<uint32_t>(ElementType::kUint32);
  CheckType<uint64_t>(ElementType::kUint64);
}

template <class T>
T Apply(BinaryOp op, ElementType type, T a, T b) {
  T y = 0;
  FindBinary(op, type).vector_vector(&a, &b, &y, 1);
  return y;
}

TEST_F(ElementwiseTest, IntegerEdgeCasesAreDefined) {
  constexpr int32_t kLeast = std::numeric_limits<int32_t>::min();
  EXPECT_EQ(Apply<int32_t>(BinaryOp::kDiv, ElementType::kInt32, 5, 0), 0);
  EXPECT_EQ(Apply<int32_t>(BinaryOp::kMod, ElementType::kInt32, 5, 0), 0);
  EXPECT_EQ(Apply<int32_t>(BinaryOp::kDiv, ElementType::kInt32, kLeast, -1), kLeast);
  EXPECT_EQ(Apply<int32_t>(BinaryOp::kFmod, ElementType::kInt32, kLeast, -1), 0);
  EXPECT_EQ(Apply<int32_t>(BinaryOp::kAdd, ElementType::kInt32, kLeast, -1), 2147483647);
  EXPECT_EQ(Apply<int64_t>(BinaryOp::kPow, ElementType::kInt64, -3, 5), -243);
  EXPECT_EQ(Apply<int64_t>(BinaryOp::kPow, ElementType::kInt64, 2, -1), 0);
  EXPECT_EQ(Apply<int64_t>(BinaryOp::kPow, ElementType::kInt64, -1, -3), -1);
  EXPECT_EQ(Apply<uint8_t>(BinaryOp::kMul, ElementType::kUint8, 16, 17), 16);
}

TEST_F(ElementwiseTest, PowMatchesReference) {
  OnEveryTarget([] {
    Random random(3);
    for (const size_t n : kLengths) {
      const auto a = random.Floats(n, 0.01f, 9);
      const auto b = random.Floats(n, -3, 3);
      std::vector<float> y(n);
      const BinaryFunctions pow = FindBinary(BinaryOp::kPow, ElementType::kFloat);
      pow.vector_vector(a.data(), b.data(), y.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_TRUE(IsNear(y[i], std::pow(a[i], b[i]), 1e-6, 0));
      for (const float exponent : {2.0f, 0.5f, -1.5f}) {
        pow.vector_scalar(a.data(), &exponent, y.data(), n);
        for (size_t i = 0; i < n; ++i) ASSERT_TRUE(IsNear(y[i], std::pow(a[i], exponent), 1e-6, 0));
      }
    }
  });
}

TEST_F(ElementwiseTest, MaxAndMinPropagateNan) {
  OnEveryTarget([] {
    const float a[] = {kNan, 1, kNan, 2, -kInf};
    const float b[] = {1, kNan, kNan, 3, kInf};
    float y[5];
    for (const BinaryOp op : {BinaryOp::kMax, BinaryOp::kMin}) {
      FindBinary(op, ElementType::kFloat).vector_vector(a, b, y, 5);
      for (int i = 0; i < 3; ++i) EXPECT_TRUE(std::isnan(y[i]));
      EXPECT_EQ(y[3], op == BinaryOp::kMax ? 3 : 2);
      EXPECT_EQ(y[4], op == BinaryOp::kMax ? kInf : -kInf);
    }
  });
}

TEST_F(ElementwiseTest, ComparisonsWithNanAreFalse) {
  OnEveryTarget([] {
    const std::vector<float> a(40, kNan), b(40, 1.0f);
    std::vector<uint8_t> y(40, 9);
    for (const auto& test : kComparisonCases) {
      FindBinary(test.op, ElementType::kFloat).vector_vector(a.data(), b.data(), y.data(), 40);
      EXPECT_EQ(y, std::vector<uint8_t>(40, 0)) << test.name;
    }
  });
}

TEST_F(ElementwiseTest, LogicMatchesReference) {
  for (const size_t n : kLengths) {
    Random random(5);
    std::vector<uint8_t> a(n), b(n), y(n);
    for (size_t i = 0; i < n; ++i) {
      a[i] = random.Below(2);
      b[i] = random.Below(2);
    }
    FindLogical(LogicalOp::kAnd).vector_vector(a.data(), b.data(), y.data(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] && b[i]);
    FindLogical(LogicalOp::kOr).vector_vector(a.data(), b.data(), y.data(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] || b[i]);
    FindLogical(LogicalOp::kXor).vector_vector(a.data(), b.data(), y.data(), n);
    for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] != b[i]);
    OnEveryTarget([&] {
      LogicalNot(a.data(), y.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], !a[i]);
    });
  }
}

template <class T>
void CheckWhere() {
  for (const size_t n : kLengths) {
    Random random(6);
    std::vector<uint8_t> c(n + 1);
    std::vector<T> a(n + 1), b(n + 1), y(n + 1);
    for (size_t i = 0; i <= n; ++i) {
      c[i] = random.Below(2) * 5;
      a[i] = static_cast<T>(i);
      b[i] = static_cast<T>(100 + i);
    }
    for (size_t bits = 0; bits < 8; ++bits) {
      const WhereStrides s = {bits & 1, bits >> 1 & 1, bits >> 2 & 1};
      Where(c.data(), a.data(), b.data(), y.data(), n, sizeof(T), s);
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(y[i], c[i * s.condition] ? a[i * s.a] : b[i * s.b]) << "strides " << bits;
      }
    }
  }
}

TEST_F(ElementwiseTest, WhereMatchesReference) {
  OnEveryTarget([] {
    CheckWhere<uint8_t>();
    CheckWhere<uint16_t>();
    CheckWhere<float>();
    CheckWhere<double>();
    CheckWhere<__int128>();
  });
}

}  // namespace
}  // namespace tenon::kernels
