#include <gtest/gtest.h>

#include "ops/run_op.h"

namespace tenon {
namespace {

Tensor Numbers(Shape shape) {
  Tensor x = Tensor::Allocate(DataType::kFloat, shape).value();
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = static_cast<float>(i);
  return x;
}

Tensor Ints(std::initializer_list<int64_t> values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

TEST(ReshapeTest, GivesTheElementsAnotherShape) {
  struct Case {
    Shape input;
    Tensor requested;
    bool allowzero;
    Shape expected;
  };
  const Case cases[] = {
      {{2, 3, 4}, Ints({4, 6}), false, {4, 6}}, {{2, 3, 4}, Ints({0, -1}), false, {2, 12}},
      {{2, 3, 4}, Ints({-1}), false, {24}},     {{1}, Ints({}), false, {}},
      {{0, 3}, Ints({3, 0}), true, {3, 0}},     {{0, 3}, Ints({0, 7}), false, {0, 7}},
  };
  for (const Case& c : cases) {
    const Tensor x = Numbers(c.input);
    const Tensor y = RunTensorOp(
        {"Reshape", 14, {x, c.requested}, MakeAttributes(Attr("allowzero", int64_t{c.allowzero}))});
    EXPECT_EQ(y.shape(), c.expected);
    EXPECT_EQ(y.raw(), x.raw()) << "a view copies nothing";
  }
}

TEST(ReshapeTest, RefusesWhatDoesNotFit) {
  const auto message = [](Tensor requested) {
    const auto outputs = RunOp({"Reshape", 14, {Numbers({2, 3}), std::move(requested)}});
    return outputs ? std::string("no error") : outputs.error().message();
  };
  EXPECT_EQ(message(Ints({4})), "expected a shape for the 6 elements of input 0 [2, 3], got [4]");
  EXPECT_EQ(message(Ints({4, -1})),
            "expected a shape for the 6 elements of input 0 [2, 3], got [4, -1]");
  EXPECT_EQ(message(Ints({-1, -1})), "expected at most one -1 in the shape, got two");
  EXPECT_EQ(message(Ints({2, 3, 0})),
            "shape[2] = 0 copies a dimension that input 0 [2, 3] does not have");
  EXPECT_EQ(message(Ints({-2})), "expected shape entries >= -1, got -2");
  EXPECT_NE(message(Ints({INT64_MAX, INT64_MAX})), "no error");
}

TEST(FlattenTest, SplitsBeforeTheAxis) {
  const auto flat = [](int64_t axis) {
    return RunTensorOp({"Flatten", 13, {Numbers({2, 3, 4})}, MakeAttributes(Attr("axis", axis))})
        .shape();
  };
  EXPECT_EQ(flat(0), Shape({1, 24}));
  EXPECT_EQ(flat(1), Shape({2, 12}));
  EXPECT_EQ(flat(3), Shape({24, 1}));
  EXPECT_EQ(flat(-1), Shape({6, 4}));
}

TEST(SqueezeTest, RemovesAxesOfSizeOne) {
  const Tensor x = Numbers({1, 3, 1});
  EXPECT_EQ(RunTensorOp({"Squeeze", 13, {x}}).shape(), Shape({3}));
  EXPECT_EQ(RunTensorOp({"Squeeze", 13, {x, Ints({-1})}}).shape(), Shape({1, 3}));
  EXPECT_EQ(RunTensorOp({"Squeeze", 11, {x}, MakeAttributes(Attr("axes", std::vector<int64_t>{0}))})
                .shape(),
            Shape({3, 1}));
  EXPECT_EQ(RunOp({"Squeeze", 13, {x, Ints({1})}}).error().message(),
            "expected size 1 at axis 1, which is removed, got 3 in [1, 3, 1]");
}

TEST(UnsqueezeTest, InsertsAxes) {
  const Tensor x = Numbers({3, 4});
  EXPECT_EQ(RunTensorOp({"Unsqueeze", 13, {x, Ints({0, -1})}}).shape(), Shape({1, 3, 4, 1}));
  EXPECT_EQ(RunOp({"Unsqueeze", 13, {x, Ints({0, 0})}}).error().message(), "axis 0 is given twice");
  EXPECT_FALSE(RunOp({"Unsqueeze", 13, {x, Ints({4})}}));
}

}  // namespace
}  // namespace tenon
