#include <limits>

#include "ops/op_cases.h"

namespace tenon {
namespace {

TEST(OneHotTest, SwitchesOneElementOnAlongEveryAxis) {
  const int64_t indices[] = {0, 2, -1, -3, 3, -4, INT64_MAX, INT64_MIN};
  ForEachElementSize([&](auto element) {
    using T = decltype(element);
    const Tensor values = Tensor::Of<T>({2}, {Iota<T>({9}).template data<T>()[8], T()});
    for (int64_t axis = -3; axis < 3; ++axis) {
      const size_t at_axis = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      const Tensor x = Tensor::Of<int64_t>({2, 4}, indices);
      const Tensor y = RunTensorOp({"OneHot",
                                    11,
                                    {x, Tensor::Of<int32_t>({}, {3}), values},
                                    MakeAttributes(Attr("axis", axis))});
      Shape expected_shape;
      for (size_t i = 0; i < 3; ++i) {
        expected_shape.Append(i == at_axis ? 3 : x.shape()[i < at_axis ? i : i - 1]);
      }
      ASSERT_EQ(y.shape(), expected_shape);
      for (int64_t i = 0; i < y.size(); ++i) {
        auto at = CoordinatesOf(i, y.shape());
        const int64_t k = at[at_axis];
        at.erase(at.begin() + static_cast<ptrdiff_t>(at_axis));
        const int64_t index = x.data<int64_t>()[PositionOf(at, x.shape())];
        const bool on = index == k || (index < 0 && index >= -3 && index + 3 == k);
        ASSERT_EQ(y.data<T>()[i], values.data<T>()[on ? 1 : 0]);
      }
    }
  });
}

TEST(OneHotTest, TakesFloatIndicesAndDepth) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  const Tensor x = Tensor::Of<float>({4}, {1, -1, kInf, std::numeric_limits<float>::quiet_NaN()});
  const Tensor y =
      RunTensorOp({"OneHot", 11, {x, Tensor::Of<float>({1}, {2}), Tensor::Of<float>({2}, {0, 1})}});
  EXPECT_EQ(ElementsOf<float>(y), (std::vector<float>{0, 1, 0, 1, 0, 0, 0, 0}));
}

TEST(OneHotTest, RefusesBadDepthAndValues) {
  const auto error = [](Tensor depth, Tensor values) {
    return ErrorOf({"OneHot", 11, {Ints({0}), std::move(depth), std::move(values)}});
  };
  const Tensor values = Tensor::Of<float>({2}, {0, 1});
  EXPECT_EQ(error(Ints({-1}), values), "expected a depth >= 0, got -1");
  EXPECT_NE(error(Ints({INT64_MAX}), values), "no error");
  EXPECT_EQ(error(Ints({1, 2}), values), "input 1: expected one element, got shape [2]");
  EXPECT_EQ(error(Ints({2}), Iota<float>({3})), "input 2: expected two values, got shape [3]");
}

}  // namespace
}  // namespace tenon
