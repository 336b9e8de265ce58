#include <gtest/gtest.h>

#include <cmath>

#include "ops/op_cases.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

template <class T>
Tensor Filled(Shape shape, int64_t start) {
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), shape).value();
  for (int64_t i = 0; i < x.size(); ++i) x.data<T>()[i] = static_cast<T>((start + i * 7) % 11 + 1);
  return x;
}

// The element of `x` that broadcasting puts at row-major position `i` of `shape`.
template <class T>
double At(const Tensor& x, const Shape& shape, int64_t i) {
  int64_t offset = 0, stride = 1;
  for (size_t back = 1; back <= shape.rank(); ++back) {
    const int64_t index = i % shape[shape.rank() - back];
    i /= shape[shape.rank() - back];
    if (back > x.rank()) continue;
    const int64_t dim = x.shape()[x.rank() - back];
    if (dim != 1) offset += index * stride;
    stride *= dim;
  }
  return static_cast<double>(x.data<T>()[offset]);
}

struct BinaryCase {
  const char* name;
  double (*reference)(double, double);
};

const BinaryCase kCases[] = {
    {"Add", [](double a, double b) { return a + b; }},
    {"Sub", [](double a, double b) { return a - b; }},
    {"Mul", [](double a, double b) { return a * b; }},
    {"Max", [](double a, double b) { return std::max(a, b); }},
    {"Min", [](double a, double b) { return std::min(a, b); }},
};
const BinaryCase kComparisons[] = {
    {"Equal", [](double a, double b) { return double(a == b); }},
    {"Less", [](double a, double b) { return double(a < b); }},
    {"LessOrEqual", [](double a, double b) { return double(a <= b); }},
    {"Greater", [](double a, double b) { return double(a > b); }},
    {"GreaterOrEqual", [](double a, double b) { return double(a >= b); }},
};

struct ShapeCase {
  Shape a, b, y;
};
const ShapeCase kShapes[] = {
    {{3, 4}, {3, 4}, {3, 4}},    {{3, 4}, {4}, {3, 4}},          {{3, 1}, {1, 5}, {3, 5}},
    {{}, {2, 3}, {2, 3}},        {{2, 3, 4}, {3, 1}, {2, 3, 4}}, {{0, 3}, {1}, {0, 3}},
    {{1}, {1, 1, 1}, {1, 1, 1}}, {{5, 1, 7}, {6, 1}, {5, 6, 7}},
};

// A small number as a T: modulo 2^n for integers.
template <class T>
T As(double number) {
  if constexpr (std::is_integral_v<T>) return static_cast<T>(static_cast<int64_t>(number));
  return static_cast<T>(number);
}

template <class T, class Out>
void CheckBinary(const BinaryCase& c) {
  for (const ShapeCase& s : kShapes) {
    const Tensor a = Filled<T>(s.a, 3), b = Filled<T>(s.b, 8);
    const Tensor y = RunTensorOp({c.name, 0, {a, b}});
    ASSERT_EQ(y.shape(), s.y) << c.name;
    for (int64_t i = 0; i < y.size(); ++i) {
      const auto expected =
          static_cast<Out>(As<T>(c.reference(At<T>(a, s.y, i), At<T>(b, s.y, i))));
      EXPECT_EQ(y.data<Out>()[i], expected) << c.name << " at " << i << " of " << s.y.ToString();
    }
  }
}

TEST(BinaryTest, BroadcastsEveryTypeOverEveryShape) {
  for (const BinaryCase& c : kCases) {
    CheckBinary<float, float>(c);
    CheckBinary<double, double>(c);
    CheckBinary<int64_t, int64_t>(c);
    CheckBinary<int32_t, int32_t>(c);
    CheckBinary<int8_t, int8_t>(c);
    CheckBinary<uint8_t, uint8_t>(c);
  }
  for (const BinaryCase& c : kComparisons) {
    CheckBinary<float, bool>(c);
    CheckBinary<int64_t, bool>(c);
  }
}

TEST(BinaryTest, RefusesShapesThatDoNotBroadcast) {
  const auto failed = RunOp({"Add", 0, {Filled<float>({2, 3}, 0), Filled<float>({2}, 0)}});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "shapes [2, 3] and [2] cannot be broadcast together");
}

TEST(BinaryTest, RemaindersFollowTheStandard) {
  const Tensor a = Tensor::Of<int32_t>({4}, {-7, 7, -7, 7});
  const Tensor b = Tensor::Of<int32_t>({4}, {3, -3, -3, 3});
  const auto values = [&](int64_t fmod) {
    const Tensor y = RunTensorOp({"Mod", 13, {a, b}, MakeAttributes(Attr("fmod", fmod))});
    return std::vector<int>(y.data<int32_t>(), y.data<int32_t>() + 4);
  };
  EXPECT_EQ(values(0), (std::vector<int>{2, -2, -1, 1}));
  EXPECT_EQ(values(1), (std::vector<int>{-1, 1, -1, 1}));
}

TEST(BinaryTest, OldBroadcastLinesUpFromAnAxis) {
  const Tensor a = Filled<float>({2, 3, 4}, 0), b = Filled<float>({3}, 5);
  const Tensor y = RunTensorOp(
      {"Add", 6, {a, b}, MakeAttributes(Attr("broadcast", int64_t{1}), Attr("axis", int64_t{1}))});
  for (int64_t i = 0; i < 24; ++i) {
    EXPECT_EQ(y.data<float>()[i], a.data<float>()[i] + b.data<float>()[i / 4 % 3]);
  }
}

TEST(BinaryTest, FoldsAnyNumberOfInputs) {
  const Tensor a = Filled<float>({3, 1}, 0), b = Filled<float>({1}, 4),
               c = Filled<float>({3, 5}, 9);
  const Tensor sum = RunTensorOp({"Sum", 0, {a, b, c}});
  const Tensor mean = RunTensorOp({"Mean", 0, {a, b, c}});
  for (int64_t i = 0; i < 15; ++i) {
    const float expected = a.data<float>()[i / 5] + b.data<float>()[0] + c.data<float>()[i];
    EXPECT_FLOAT_EQ(sum.data<float>()[i], expected);
    EXPECT_FLOAT_EQ(mean.data<float>()[i], expected / 3);
  }
  EXPECT_EQ(RunTensorOp({"Max", 0, {c}}).values<float>()[7], c.values<float>()[7]);
}

TEST(BinaryTest, LogicFollowsItsTables) {
  const Tensor a = Tensor::Of<bool>({4}, {false, false, true, true});
  const Tensor b = Tensor::Of<bool>({4}, {false, true, false, true});
  const auto values = [&](const char* op) {
    const Tensor y = RunTensorOp({op, 0, {a, b}});
    return std::vector<bool>(y.data<bool>(), y.data<bool>() + 4);
  };
  EXPECT_EQ(values("And"), (std::vector<bool>{0, 0, 0, 1}));
  EXPECT_EQ(values("Or"), (std::vector<bool>{0, 1, 1, 1}));
  EXPECT_EQ(values("Xor"), (std::vector<bool>{0, 1, 1, 0}));
}

TEST(BinaryTest, OldLogicAndSlopesLineUpToo) {
  const Tensor a = Tensor::Of<bool>({2, 2}, {false, true, true, false});
  const Tensor b = Tensor::Of<bool>({2}, {true, false});
  const Tensor y = RunTensorOp(
      {"Xor", 1, {a, b}, MakeAttributes(Attr("broadcast", int64_t{1}), Attr("axis", int64_t{0}))});
  EXPECT_EQ(std::vector<bool>(y.data<bool>(), y.data<bool>() + 4), (std::vector<bool>{1, 0, 1, 0}));
  const Tensor x = Tensor::Of<float>({1, 2, 2}, {-1, 2, -3, -4});
  for (const int opset : {1, 6}) {
    EXPECT_EQ(ElementsOf<float>(RunTensorOp({"PRelu", opset, {x, Tensor::Of<float>({2}, {2, 3})}})),
              (std::vector<float>{-2, 2, -9, -12}));
    EXPECT_EQ(ElementsOf<float>(RunTensorOp({"PRelu", opset, {x, Tensor::Of<float>({1}, {2})}})),
              (std::vector<float>{-2, 2, -6, -8}));
  }
}

// Of what a shape computation knows, one element may meet none.
TEST(BinaryTest, NoElementsTimesOneAreNone) {
  const Tensor none = Tensor::Of<int64_t>({0}, {}), one = Tensor::Of<int64_t>({1}, {2});
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Equal"}) {
    for (const auto& [a, b] : {std::pair(none, one), std::pair(one, none)}) {
      EXPECT_EQ(RunTensorOp({op, 13, {a, b}}).shape(), Shape({0})) << op;
    }
  }
  for (const DataType type : {DataType::kFloat, DataType::kInt32}) {
    const Tensor exponent = Tensor::Allocate(type, {0}).value();
    EXPECT_EQ(RunTensorOp({"Pow", 13, {Tensor::Of<float>({1}, {2}), exponent}}).shape(),
              Shape({0}));
  }
}

TEST(BinaryTest, PowersMayHaveExponentsOfAnotherType) {
  const Tensor floats = Tensor::Of<float>({3}, {1.5f, -2, 0.5f});
  const Tensor ints = Tensor::Of<int32_t>({3}, {2, -3, 7});
  const auto pow = [](const Tensor& a, const Tensor& b) {
    return RunTensorOp({"Pow", 13, {a, b}});
  };
  EXPECT_EQ(ElementsOf<float>(pow(floats, Tensor::Of<int64_t>({3}, {2, 3, -1}))),
            (std::vector<float>{2.25f, -8, 2}));
  EXPECT_EQ(ElementsOf<float>(pow(floats, Tensor::Of<double>({}, {2}))),
            (std::vector<float>{2.25f, 4, 0.25f}));
  EXPECT_EQ(ElementsOf<int32_t>(pow(ints, Tensor::Of<float>({3}, {0.5f, 2, 2}))),
            (std::vector<int32_t>{1, 9, 49}));
  EXPECT_EQ(ElementsOf<int32_t>(pow(ints, Tensor::Of<uint8_t>({1}, {3}))),
            (std::vector<int32_t>{8, -27, 343}));
}

TEST(BinaryTest, ComparesStrings) {
  const Tensor a = Tensor::Of<std::string>({2, 1}, {"tenon", ""});
  const Tensor b = Tensor::Of<std::string>({3}, {"", "tenon", "Tenon"});
  const Tensor y = RunTensorOp({"Equal", 19, {a, b}});
  EXPECT_EQ(y.shape(), (Shape{2, 3}));
  EXPECT_EQ(std::vector<bool>(y.data<bool>(), y.data<bool>() + 6),
            (std::vector<bool>{0, 1, 0, 1, 0, 0}));
}

}  // namespace
}  // namespace tenon
