#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "ir/schema.h"
#include "kernels/unary_cases.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

template <class T>
Tensor Arguments(const UnaryCase& test) {
  constexpr int64_t kSize = 131;
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), {kSize}).value();
  for (int64_t i = 0; i < kSize; ++i) {
    x.data<T>()[i] =
        static_cast<T>(test.low + (test.high - test.low) * double(i) / double(kSize - 1));
  }
  return x;
}

std::vector<Attribute> AttributesOf(const UnaryCase& test) {
  std::vector<Attribute> attributes;
  const auto& [first, second] = InfoOf(test.op).parameters;
  if (!first.name.empty()) attributes.push_back(Attr(std::string(first.name), test.a));
  if (!second.name.empty()) attributes.push_back(Attr(std::string(second.name), test.b));
  return attributes;
}

// Bounds are attributes of Clip before opset 11.
int32_t OpsetOf(UnaryOp op) { return op == UnaryOp::kClip ? 10 : 0; }

// An operator that computes the function of a case.
struct UnaryOperator {
  std::string op_type;
  int32_t opset = 0;
  std::string domain = "";
  std::function<std::vector<Attribute>()> attributes = [] { return std::vector<Attribute>(); };
};

template <class T>
void CheckUnary(const UnaryCase& test, const UnaryOperator& op) {
  const Tensor x = Arguments<T>(test);
  OpCall call = {op.op_type, op.opset, {x}, op.attributes()};
  call.domain = op.domain;
  const Tensor y = RunTensorOp(std::move(call));
  ASSERT_EQ(y.shape(), x.shape());
  ASSERT_EQ(y.type(), x.type());
  for (int64_t i = 0; i < x.size(); ++i) {
    const long double exact = test.reference(x.data<T>()[i], test.a, test.b);
    EXPECT_LE(ErrorOf(y.data<T>()[i], exact, ToleranceOf<T>(test)), 1)
        << op.op_type << "(" << x.data<T>()[i] << "): expected " << static_cast<double>(exact)
        << ", got " << y.data<T>()[i];
  }
}

void CheckBothTypes(const UnaryCase& test, const UnaryOperator& op) {
  CheckUnary<float>(test, op);
  CheckUnary<double>(test, op);
}

TEST(UnaryTest, EveryOperatorReachesItsFunction) {
  for (const UnaryCase& test : kUnaryCases) {
    const UnaryInfo& info = InfoOf(test.op);
    if (!info.is_operator) continue;
    CheckBothTypes(test, {.op_type = std::string(info.name),
                          .opset = OpsetOf(test.op),
                          .attributes = [&] { return AttributesOf(test); }});
  }
}

TEST(UnaryTest, OlderAndOtherOperatorsReachTheirFunctions) {
  CheckBothTypes(CaseOf(UnaryOp::kRelu), {.op_type = "Relu", .opset = 6});
  CheckBothTypes(CaseOf(UnaryOp::kGelu), {"Gelu", 1, "com.microsoft"});
  CheckBothTypes(CaseOf(UnaryOp::kGeluTanh),
                 {.op_type = "Gelu", .opset = 20, .attributes = [] {
                    return MakeAttributes(Attr("approximate", std::string("tanh")));
                  }});
  // The default is the parameter of the case.
  CheckBothTypes(CaseOf(UnaryOp::kSwish), {"QuickGelu", 1, "com.microsoft"});
  UnaryCase swish = CaseOf(UnaryOp::kSwish);
  swish.a = 0.75f;
  CheckBothTypes(swish, {"QuickGelu", 1, "com.microsoft",
                         [&] { return MakeAttributes(Attr("alpha", swish.a)); }});
}

TEST(UnaryTest, ParametersAreThoseOfTheSchema) {
  for (const UnaryInfo& info : kUnaryFunctions) {
    if (!info.is_operator) continue;
    SCOPED_TRACE(info.name);
    const int32_t opset = info.name == "Clip" ? 10 : NewestOpset("");
    const OpSchema* schema = FindSchema("", info.name, opset);
    ASSERT_NE(schema, nullptr);
    size_t floats = 0;
    for (const OpAttribute& attribute : schema->attributes) {
      floats += attribute.type == AttributeType::kFloat;
    }
    EXPECT_EQ(floats, info.parameter_count());
    for (size_t i = 0; i < info.parameter_count(); ++i) {
      const OpAttribute* attribute = schema->FindAttribute(info.parameters[i].name);
      ASSERT_NE(attribute, nullptr) << info.parameters[i].name;
      EXPECT_TRUE(attribute->has_default);
      EXPECT_EQ(attribute->default_float, info.parameters[i].fallback) << info.parameters[i].name;
    }
  }
}

TEST(UnaryTest, ParametersThatAreLeftOutHaveTheirDefaults) {
  for (const UnaryInfo& info : kUnaryFunctions) {
    if (!info.is_operator || info.parameter_count() == 0) continue;
    const UnaryOp op = *FindUnaryOp(info.name);
    UnaryCase test = CaseOf(op);
    test.a = info.parameters[0].fallback;
    test.b = info.parameters[1].fallback;
    CheckBothTypes(test, {std::string(info.name), OpsetOf(op)});
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
