#include <algorithm>

#include "ops/op_cases.h"

namespace tenon {
namespace {

Tensor ConstantOf(Attribute attribute) {
  return RunTensorOp({"Constant", 13, {}, MakeAttributes(std::move(attribute))});
}

TEST(ConstantTest, TakesTheValueFromAnyForm) {
  const Tensor tensor = Iota<int16_t>({2, 3});
  EXPECT_EQ(ElementsOf<int16_t>(ConstantOf(Attr("value", tensor))), ElementsOf<int16_t>(tensor));
  EXPECT_EQ(ElementsOf<float>(ConstantOf(Attr("value_float", 2.5f))), std::vector<float>{2.5f});
  EXPECT_EQ(ConstantOf(Attr("value_int", int64_t{7})).shape(), Shape());
  EXPECT_EQ(ElementsOf<int64_t>(ConstantOf(Attr("value_ints", std::vector<int64_t>{3, 4}))),
            (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(ElementsOf<float>(ConstantOf(Attr("value_floats", std::vector<float>{}))).size(), 0u);
  EXPECT_EQ(ElementsOf<std::string>(ConstantOf(Attr("value_string", std::string("a")))),
            std::vector<std::string>{"a"});
  EXPECT_EQ(ConstantOf(Attr("value_strings", std::vector<std::string>{"a", "b"})).shape(),
            Shape({2}));
  EXPECT_EQ(ErrorOf({"Constant", 13, {}}), "expected an attribute with the value");
}

TEST(ConstantOfShapeTest, RepeatsTheValue) {
  EXPECT_EQ(ElementsOf<float>(RunTensorOp({"ConstantOfShape", 9, {Ints({2, 2})}})),
            std::vector<float>(4, 0.0f));
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    const Tensor three = Tensor::Of<T>({1}, {Iota<T>({4}).template data<T>()[3]});
    const Tensor y = RunTensorOp(
        {"ConstantOfShape", 9, {Ints({300, 400})}, MakeAttributes(Attr("value", three))});
    EXPECT_EQ(y.shape(), Shape({300, 400}));
    EXPECT_EQ(ElementsOf<T>(y), std::vector<T>(120000, three.template data<T>()[0]));
  });
  EXPECT_EQ(RunTensorOp({"ConstantOfShape", 9, {Ints({})}}).shape(), Shape());
  const Tensor text = Tensor::Of<std::string>({1}, {std::string(40, 'a')});
  EXPECT_EQ(ElementsOf<std::string>(RunTensorOp(
                {"ConstantOfShape", 9, {Ints({3})}, MakeAttributes(Attr("value", text))})),
            std::vector<std::string>(3, std::string(40, 'a')));
}

TEST(ConstantOfShapeTest, RepeatsTheValueInLargeTensors) {
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    const Tensor three = Tensor::Of<T>({1}, {Iota<T>({4}).template data<T>()[3]});
    const Tensor y = RunTensorOp(
        {"ConstantOfShape", 9, {Ints({1201, 1001})}, MakeAttributes(Attr("value", three))});
    EXPECT_EQ(y.shape(), Shape({1201, 1001}));
    EXPECT_EQ(ElementsOf<T>(y), std::vector<T>(1202201, three.template data<T>()[0]));
  });
  // Two elements a byte, the last of them alone.
  const uint8_t six = 6;
  const Tensor narrow = Tensor::View(DataType::kUint4, Shape({1}), const_cast<uint8_t*>(&six));
  const Tensor y = RunTensorOp(
      {"ConstantOfShape", 23, {Ints({2200001})}, MakeAttributes(Attr("value", narrow))});
  const auto* const bytes = static_cast<const uint8_t*>(y.raw());
  EXPECT_EQ(std::count(bytes, bytes + 1100000, 0x66), 1100000);
  EXPECT_EQ(bytes[1100000] & 15, 6);
}

TEST(ConstantOfShapeTest, RefusesBadShapes) {
  EXPECT_EQ(ErrorOf({"ConstantOfShape", 9, {Ints({-1})}}), "expected shape entries >= 0, got [-1]");
  EXPECT_NE(ErrorOf({"ConstantOfShape", 9, {Ints({INT64_MAX, 2})}}), "no error");
  EXPECT_EQ(ErrorOf({"ConstantOfShape", 9, {Ints({1})}, MakeAttributes(Attr("value", Ints({})))}),
            "attribute 'value': expected one element, got shape [0]");
}

}  // namespace
}  // namespace tenon
