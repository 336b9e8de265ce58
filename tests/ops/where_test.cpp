#include "ops/op_cases.h"

namespace tenon {
namespace {

TEST(WhereTest, ChoosesWithBroadcasting) {
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    const Tensor condition = Tensor::Of<bool>({2, 1, 3}, {true, false, true, false, false, true});
    const Tensor a = Iota<T>({4, 1});
    const Tensor b = Iota<T>({1, 4, 3});
    const Tensor y = RunTensorOp({"Where", 16, {condition, a, b}});
    ASSERT_EQ(y.shape(), Shape({2, 4, 3}));
    for (int64_t i = 0; i < y.size(); ++i) {
      const auto at = CoordinatesOf(i, y.shape());
      const T expected = condition.data<bool>()[at[0] * 3 + at[2]] ? a.data<T>()[at[1]]
                                                                   : b.data<T>()[at[1] * 3 + at[2]];
      ASSERT_EQ(y.data<T>()[i], expected) << i;
    }
  });
}

TEST(WhereTest, RefusesShapesThatDoNotBroadcast) {
  EXPECT_EQ(ErrorOf({"Where", 16, {Iota<bool>({2}), Iota<float>({3}), Iota<float>({1})}}),
            "shapes [2] and [3] cannot be broadcast together");
}

}  // namespace
}  // namespace tenon
