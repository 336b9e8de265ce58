#include "kernels/elementwise/elementwise.h"

#include <algorithm>
#include <limits>

#include "kernels/target_test.h"
#include "kernels/unary_cases.h"

namespace tenon::kernels {
namespace {

constexpr size_t kLengths[] = {0, 1, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 33, 67, 1000};

using ElementwiseTest = TargetTest;

// Arguments of a case: all over its range, with all the digits that T has.
template <class T>
std::vector<T> Arguments(const UnaryCase& test, size_t n, Random& random) {
  std::vector<T> x(n);
  for (T& v : x) {
    const double fine = random.Uniform(0, 1) / 16777216.0;
    v = static_cast<T>(test.low + (test.high - test.low) * (random.Uniform(0, 1) + fine));
  }
  return x;
}

template <class T>
void ExpectUnary(const UnaryCase& test, const std::vector<T>& x, const std::vector<T>& y) {
  for (size_t i = 0; i < x.size(); ++i) {
    const long double exact = test.reference(x[i], test.a, test.b);
    ASSERT_LE(ErrorOf(y[i], exact, ToleranceOf<T>(test)), 1)
        << InfoOf(test.op).name << "(" << x[i] << ") at " << i << " of " << x.size()
        << ": expected " << static_cast<double>(exact) << ", got " << y[i];
  }
}

void Apply(const UnaryCase& test, const float* x, float* y, size_t n) {
  FindUnary(test.op)(x, y, n, test.a, test.b);
}
void Apply(const UnaryCase& test, const double* x, double* y, size_t n) {
  ApplyInDouble(test.op, x, y, n, test.a, test.b);
}

template <class T>
void CheckUnary(const UnaryCase& test) {
  Random random(7);
  for (const size_t n : kLengths) {
    const std::vector<T> x = Arguments<T>(test, n, random);
    std::vector<T> y(n + 1, -77);
    Apply(test, x.data(), y.data(), n);
    EXPECT_EQ(y[n], -77) << InfoOf(test.op).name << " wrote past the end";
    y.pop_back();
    ExpectUnary(test, x, y);
    std::vector<T> in_place = x;
    Apply(test, in_place.data(), in_place.data(), n);
    for (size_t i = 0; i < n; ++i) {
      ASSERT_TRUE(in_place[i] == y[i] || std::isnan(y[i])) << InfoOf(test.op).name;
    }
  }
  const T inf = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  const std::vector<T> special = {inf, -inf, nan, 0, -T{0}, 0.5, -0.5, 1.5, 2.5, -2.5};
  std::vector<T> y(special.size());
  Apply(test, special.data(), y.data(), special.size());
  ExpectUnary(test, special, y);
}

TEST_F(ElementwiseTest, UnaryMatchesReferenceAtEveryLengthOnEveryTarget) {
  for (const UnaryCase& test : kUnaryCases) {
    ASSERT_EQ(static_cast<size_t>(test.op), static_cast<size_t>(&test - kUnaryCases));
    OnEveryTarget([&] {
      CheckUnary<float>(test);
      CheckUnary<double>(test);
    });
  }
}

// Those functions of double that have code of their own, over all that they take: where results
// overflow, underflow or have few digits, and angles that are reduced in another way.
TEST_F(ElementwiseTest, DoublesErrAsStatedOverTheirWholeRange) {
#ifdef __wasm__
  GTEST_SKIP() << "its C library's functions of long double compute in double";
#endif
  struct Range {
    UnaryOp op;
    double low, high;
    bool logarithmic = false;  // many magnitudes, of both signs
  };
  constexpr Range kRanges[] = {
      {UnaryOp::kExp, -750, 715},         {UnaryOp::kExp, -745.2, -707},
      {UnaryOp::kExp, 1e-320, 1, true},   {UnaryOp::kLog, 5e-324, 1.7e308, true},
      {UnaryOp::kLog, 0.7, 1.5},          {UnaryOp::kTanh, -25, 25},
      {UnaryOp::kTanh, 1e-320, 1, true},  {UnaryOp::kSigmoid, -750, 40},
      {UnaryOp::kSoftplus, -750, 60},     {UnaryOp::kSin, -1e6, 1e6},
      {UnaryOp::kSin, 1e-320, 1, true},   {UnaryOp::kSin, 1, 1e300, true},
      {UnaryOp::kCos, -1e6, 1e6},         {UnaryOp::kCos, 1, 1e300, true},
      {UnaryOp::kTan, -1e6, 1e6},         {UnaryOp::kElu, -50, 1},
      {UnaryOp::kElu, 1e-320, 1e2, true}, {UnaryOp::kErf, -6.5, 6.5},
      {UnaryOp::kErf, 1e-320, 1, true},   {UnaryOp::kGelu, -6, 6},
  };
  Random random(9);
  for (const Range& range : kRanges) {
    const UnaryCase& test = CaseOf(range.op);
    std::vector<double> x(20'001);
    for (double& v : x) {
      const double u = random.Uniform(0, 1) + random.Uniform(0, 1) / 16777216.0;
      if (range.logarithmic) {
        const double low = std::log2(range.low), high = std::log2(range.high);
        v = std::copysign(std::exp2(low + (high - low) * u), random.Uniform(-1, 1));
      } else {
        v = range.low + (range.high - range.low) * u;
      }
    }
    OnEveryTarget([&] {
      std::vector<double> y(x.size());
      Apply(test, x.data(), y.data(), x.size());
      ExpectUnary(test, x, y);
    });
  }
}

TEST_F(ElementwiseTest, UnaryOverRowsLeavesWhatIsBetweenThem) {
  OnEveryTarget([] {
    constexpr size_t kRows = 3;
    Random random(8);
    for (const UnaryCase& test : kUnaryCases) {
      for (const size_t n : kLengths) {
        const size_t stride = n + 5;
        const std::vector<float> x = random.Floats(kRows * stride, -2, 2);
        std::vector<float> alone(x.size()), rows = x;
        Apply(test, x.data(), alone.data(), x.size());
        FindUnary(test.op).OverRows(rows.data(), stride, kRows, n, test.a, test.b);
        for (size_t i = 0; i < x.size(); ++i) {
          const float expected = i % stride < n ? alone[i] : x[i];
          ASSERT_TRUE(Bits(rows[i]) == Bits(expected) || std::isnan(expected))
              << InfoOf(test.op).name << " at " << i << " of rows of " << n;
        }
      }
    }
  });
}

// Of what a layout fills up with, a function that may read it makes nothing infinite.
TEST_F(ElementwiseTest, FiniteFunctionsStayFinite) {
  for (const UnaryCase& test : kUnaryCases) {
    if (!InfoOf(test.op).Has(kFinite)) continue;
    for (const double x : {0.0, -0.0, 1.0, -1.0, 1e-300, -1e-30, 0.5, 1e12, -1e12, 1e30, -1e30}) {
      float y = static_cast<float>(x);
      double in_double = x;
      Apply(test, &y, &y, 1);
      Apply(test, &in_double, &in_double, 1);
      EXPECT_TRUE(std::isfinite(y) && std::isfinite(in_double)) << InfoOf(test.op).name << x;
    }
  }
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

// KRN-1: whatever the quotient is, also where it is next to a whole number.
TEST_F(ElementwiseTest, FmodIsThatOfTheCLibrary) {
  std::vector<float> numbers = {0.0f,   -0.0f,       1.0f,  -6.0f, 3.0f,  0.1f, -0.7f,
                                1e-45f, 16777215.0f, 3e38f, kInf,  -kInf, kNan, 0.99999994f};
  Random random(11);
  for (const float x : random.Floats(200, -1e6f, 1e6f)) numbers.push_back(x);
  for (const float x : random.Floats(50, 0.001f, 0.01f))
    numbers.push_back(x * 7), numbers.push_back(x);
  OnEveryTarget([&] {
    for (const float a : numbers) {
      for (const float b : numbers) {
        const float y = Apply<float>(BinaryOp::kFmod, ElementType::kFloat, a, b);
        const float expected = std::fmod(a, b);
        if (std::isnan(expected)) {
          ASSERT_TRUE(std::isnan(y)) << a << " by " << b;
        } else {
          ASSERT_EQ(std::bit_cast<uint32_t>(y), std::bit_cast<uint32_t>(expected))
              << a << " by " << b;
        }
      }
    }
  });
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

TEST_F(ElementwiseTest, SquaresAreProductsInEveryForm) {
  OnEveryTarget([] {
    Random random(4);
    const BinaryFunctions pow = FindBinary(BinaryOp::kPow, ElementType::kFloat);
    for (const size_t n : kLengths) {
      const auto a = random.Floats(n, -9, 9);
      const std::vector<float> twos(n, 2.0f);
      const float two = 2, base = -1.3f;
      std::vector<float> y(n), z(n);
      pow.vector_vector(a.data(), twos.data(), y.data(), n);
      pow.vector_scalar(a.data(), &two, z.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[i] * a[i]);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(z[i], a[i] * a[i]);
      pow.scalar_vector(&base, twos.data(), y.data(), n);
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(y[i], base * base);
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
