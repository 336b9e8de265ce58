#include <algorithm>

#include "ops/op_cases.h"

namespace tenon {
namespace {

// One update, in int64 so that the test states the arithmetic by itself.
int64_t Combined(const std::string& reduction, int64_t old, int64_t update) {
  if (reduction == "add") return old + update;
  if (reduction == "mul") return old * update;
  if (reduction == "max") return std::max(old, update);
  if (reduction == "min") return std::min(old, update);
  return update;
}

template <class T>
void ExpectScatteredElements(const std::string& reduction) {
  const Shape shape = {3, 4, 2};
  const Shape index_shape = {2, 4, 1};
  for (size_t axis = 0; axis < 3; ++axis) {
    const Tensor data = Iota<T>(shape);
    Tensor indices = Iota<int64_t>(index_shape);
    Tensor updates = Iota<T>(index_shape);
    std::vector<int64_t> expected(24);
    for (int64_t i = 0; i < 24; ++i) expected[static_cast<size_t>(i)] = i;
    for (int64_t i = 0; i < indices.size(); ++i) {
      const int64_t dim = shape[axis];
      indices.data<int64_t>()[i] = i * 5 % (2 * dim) - dim;
      auto at = CoordinatesOf(i, index_shape);
      at[axis] = (indices.data<int64_t>()[i] + dim) % dim;
      int64_t& into = expected[static_cast<size_t>(PositionOf(at, shape))];
      into = Combined(reduction, into, i);
    }
    const Tensor y = RunTensorOp(
        {"ScatterElements",
         18,
         {data, indices, updates},
         MakeAttributes(Attr("axis", static_cast<int64_t>(axis)), Attr("reduction", reduction))});
    ASSERT_EQ(y.shape(), shape);
    for (int64_t i = 0; i < 24; ++i) {
      ASSERT_EQ(y.data<T>()[i], static_cast<T>(expected[static_cast<size_t>(i)])) << reduction;
    }
  }
}

TEST(ScatterElementsTest, WritesOrCombines) {
  for (const std::string reduction : {"none", "add", "mul", "max", "min"}) {
    ExpectScatteredElements<float>(reduction);
    ExpectScatteredElements<int8_t>(reduction);
    ExpectScatteredElements<uint64_t>(reduction);
  }
  const Tensor y = RunTensorOp({"Scatter",
                                9,
                                {Tensor::Of<std::string>({2}, {"a", "b"}), Ints({-1}),
                                 Tensor::Of<std::string>({1}, {"c"})}});
  EXPECT_EQ(ElementsOf<std::string>(y), (std::vector<std::string>{"a", "c"}));
}

TEST(ScatterElementsTest, RefusesBadIndices) {
  const auto error = [](Tensor indices, Tensor updates) {
    return ErrorOf(
        {"ScatterElements", 18, {Iota<float>({3}), std::move(indices), std::move(updates)}});
  };
  EXPECT_EQ(error(Ints({3}), Iota<float>({1})),
            "index 3 at position 0 is out of range [-3, 2] of axis 0");
  EXPECT_NE(error(Ints({INT64_MIN}), Iota<float>({1})), "no error");
  EXPECT_EQ(error(Ints({0}), Iota<float>({2})),
            "expected updates of the indices' shape [1], got [2]");
}

TEST(ScatterNDTest, WritesSlices) {
  const Tensor indices = Tensor::Of<int64_t>({2, 1}, {2, -3});
  const Tensor updates = Tensor::Of<float>({2, 2}, {10, 20, 30, 40});
  const auto scatter = [&](std::string reduction) {
    return ElementsOf<float>(RunTensorOp({"ScatterND",
                                          18,
                                          {Iota<float>({3, 2}), indices, updates},
                                          MakeAttributes(Attr("reduction", reduction))}));
  };
  EXPECT_EQ(scatter("none"), (std::vector<float>{30, 40, 2, 3, 10, 20}));
  EXPECT_EQ(scatter("add"), (std::vector<float>{30, 41, 2, 3, 14, 25}));
  EXPECT_EQ(scatter("max"), (std::vector<float>{30, 40, 2, 3, 10, 20}));
  EXPECT_EQ(ErrorOf({"ScatterND", 18, {Iota<float>({3, 2}), indices, Iota<float>({2, 3})}}),
            "expected updates of shape [2, 2], got [2, 3]");
  EXPECT_EQ(ErrorOf({"ScatterND",
                     18,
                     {Iota<float>({3, 2}), Tensor::Of<int64_t>({1, 2}, {0, 2}), Iota<float>({1})}}),
            "index 2 at position 1 is out of range [-2, 1] of axis 1");
}

}  // namespace
}  // namespace tenon
