#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "ops/run_op.h"

namespace tenon {
namespace {

// The kernels have separate tests for accuracy; these show that an operator calls its kernel with
// its attributes, in both precisions.
struct UnaryCase {
  const char* name;
  double (*reference)(double);
  double low, high;
  std::vector<std::pair<const char*, float>> attributes = {};
  int opset = 0;
  const char* domain = "";
};

const UnaryCase kCases[] = {
    {"Abs", [](double x) { return std::abs(x); }, -3, 3},
    {"Neg", [](double x) { return -x; }, -3, 3},
    {"Sign", [](double x) { return double((x > 0) - (x < 0)); }, -3, 3},
    {"Relu", [](double x) { return x > 0 ? x : 0; }, -3, 3},
    {"Relu", [](double x) { return x > 0 ? x : 0; }, -3, 3, {}, 6},
    {"Floor", [](double x) { return std::floor(x); }, -3, 3},
    {"Ceil", [](double x) { return std::ceil(x); }, -3, 3},
    {"Round", [](double x) { return std::nearbyint(x); }, -3, 3},
    {"Sqrt", [](double x) { return std::sqrt(x); }, 0, 9},
    {"Reciprocal", [](double x) { return 1 / x; }, 0.1, 9},
    {"Exp", [](double x) { return std::exp(x); }, -3, 3},
    {"Log", [](double x) { return std::log(x); }, 0.1, 9},
    {"Erf", [](double x) { return std::erf(x); }, -3, 3},
    {"Sin", [](double x) { return std::sin(x); }, -3, 3},
    {"Cos", [](double x) { return std::cos(x); }, -3, 3},
    {"Tan", [](double x) { return std::tan(x); }, -1, 1},
    {"Asin", [](double x) { return std::asin(x); }, -1, 1},
    {"Acos", [](double x) { return std::acos(x); }, -1, 1},
    {"Atan", [](double x) { return std::atan(x); }, -9, 9},
    {"Sinh", [](double x) { return std::sinh(x); }, -3, 3},
    {"Cosh", [](double x) { return std::cosh(x); }, -3, 3},
    {"Tanh", [](double x) { return std::tanh(x); }, -3, 3},
    {"Asinh", [](double x) { return std::asinh(x); }, -3, 3},
    {"Acosh", [](double x) { return std::acosh(x); }, 1, 9},
    {"Atanh", [](double x) { return std::atanh(x); }, -0.9, 0.9},
    {"Sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, -9, 9},
    {"HardSigmoid", [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); }, -4, 4},
    {"HardSigmoid",
     [](double x) { return std::clamp(0.5 * x + 0.25, 0.0, 1.0); },
     -4,
     4,
     {{"alpha", 0.5f}, {"beta", 0.25f}}},
    {"HardSwish", [](double x) { return x * std::clamp(x / 6 + 0.5, 0.0, 1.0); }, -4, 4},
    {"LeakyRelu", [](double x) { return x < 0 ? 0.01 * x : x; }, -4, 4},
    {"LeakyRelu", [](double x) { return x < 0 ? 0.25 * x : x; }, -4, 4, {{"alpha", 0.25f}}},
    {"ThresholdedRelu", [](double x) { return x > 1 ? x : 0; }, -4, 4},
    {"Elu", [](double x) { return x < 0 ? 2 * std::expm1(x) : x; }, -4, 4, {{"alpha", 2.0f}}},
    {"Selu",
     [](double x) {
       return 1.05070102214813232421875 * (x < 0 ? 1.67326319217681884765625 * std::expm1(x) : x);
     },
     -4, 4},
    {"Celu", [](double x) { return x < 0 ? 2 * std::expm1(x / 2) : x; }, -4, 4, {{"alpha", 2.0f}}},
    {"Softplus", [](double x) { return std::log1p(std::exp(x)); }, -9, 9},
    {"Softsign", [](double x) { return x / (1 + std::abs(x)); }, -9, 9},
    {"Swish", [](double x) { return x / (1 + std::exp(-x)); }, -9, 9},
    {"Mish", [](double x) { return x * std::tanh(std::log1p(std::exp(x))); }, -9, 9},
    {"Gelu", [](double x) { return 0.5 * x * (1 + std::erf(x / std::sqrt(2.0))); }, -4, 4},
    {"QuickGelu",
     [](double x) { return x / (1 + std::exp(-1.5 * x)); },
     -4,
     4,
     {{"alpha", 1.5f}},
     1,
     "com.microsoft"},
};

template <class T>
void CheckUnary(const UnaryCase& c, double tolerance) {
  constexpr int64_t kSize = 131;
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), {kSize}).value();
  for (int64_t i = 0; i < kSize; ++i) {
    x.data<T>()[i] = static_cast<T>(c.low + (c.high - c.low) * double(i) / double(kSize - 1));
  }
  OpCall call{c.name, c.opset, {x}};
  call.domain = c.domain;
  for (const auto& [name, value] : c.attributes) call.attributes.push_back(Attr(name, value));
  const Tensor y = RunTensorOp(std::move(call));
  ASSERT_EQ(y.shape(), x.shape());
  for (int64_t i = 0; i < kSize; ++i) {
    const double expected = c.reference(double(x.data<T>()[i]));
    EXPECT_NEAR(double(y.data<T>()[i]), expected, tolerance * (1 + std::abs(expected)))
        << c.name << "(" << double(x.data<T>()[i]) << ")";
  }
}

TEST(UnaryTest, EveryOperatorReachesItsKernel) {
  for (const UnaryCase& c : kCases) {
    CheckUnary<float>(c, 3e-6);
    CheckUnary<double>(c, 1e-7);  // attributes are float
  }
}

TEST(UnaryTest, IntegersKeepTheirLeastValue) {
  const Tensor x = Tensor::Of<int8_t>({4}, {int8_t{-128}, int8_t{-3}, int8_t{0}, int8_t{5}});
  const auto values = [&](const char* op) {
    const Tensor y = RunTensorOp({op, 0, {x}});
    return std::vector<int>(y.data<int8_t>(), y.data<int8_t>() + 4);
  };
  EXPECT_EQ(values("Abs"), (std::vector<int>{-128, 3, 0, 5}));
  EXPECT_EQ(values("Neg"), (std::vector<int>{-128, 3, 0, -5}));
  EXPECT_EQ(values("Sign"), (std::vector<int>{-1, -1, 0, 1}));
  EXPECT_EQ(values("Relu"), (std::vector<int>{0, 0, 0, 5}));
}

TEST(UnaryTest, TestsOfNumbers) {
  const float inf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::Of<float>({4}, {1.0f, inf, -inf, NAN});
  const auto values = [&](OpCall call) {
    const Tensor y = RunTensorOp(std::move(call));
    return std::vector<bool>(y.data<bool>(), y.data<bool>() + y.size());
  };
  EXPECT_EQ(values({"IsNaN", 0, {x}}), (std::vector<bool>{0, 0, 0, 1}));
  EXPECT_EQ(values({"IsInf", 0, {x}}), (std::vector<bool>{0, 1, 1, 0}));
  EXPECT_EQ(values({"IsInf", 0, {x}, MakeAttributes(Attr("detect_positive", int64_t{0}))}),
            (std::vector<bool>{0, 0, 1, 0}));
  EXPECT_EQ(values({"Not", 0, {Tensor::Of<bool>({2}, {true, false})}}), (std::vector<bool>{0, 1}));
}

TEST(UnaryTest, GeluRefusesUnknownForms) {
  const Tensor x = Tensor::Of<float>({1}, {1.0f});
  const auto failed =
      RunOp({"Gelu", 20, {x}, MakeAttributes(Attr("approximate", std::string("cubic")))});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(),
            "attribute 'approximate': expected 'none' or 'tanh', got 'cubic'");
}

}  // namespace
}  // namespace tenon
