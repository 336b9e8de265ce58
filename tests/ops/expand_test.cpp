#include "ops/op_cases.h"

namespace tenon {
namespace {

TEST(ExpandTest, BroadcastsBothWays) {
  struct Case {
    Shape input;
    Tensor requested;
    Shape expected;
  };
  const Case cases[] = {
      {{3, 1}, Ints({2, 1, 6}), {2, 3, 6}},
      {{3, 4}, Ints({1, 1}), {3, 4}},
      {{}, Ints({2, 3}), {2, 3}},
      {{1, 5}, Ints({0, 5}), {0, 5}},
      {{2, 1, 3}, Ints({4, 1}), {2, 4, 3}},
      {{1}, Ints({}), {1}},
      {{70000}, Ints({3, 70000}), {3, 70000}},
  };
  for (const Case& c : cases) {
    const Tensor x = Iota<float>(c.input);
    const Tensor y = RunTensorOp({"Expand", 13, {x, c.requested}});
    ASSERT_EQ(y.shape(), c.expected);
    ExpectElements<float>(y, x, [&](const std::vector<int64_t>& at) {
      std::vector<int64_t> from(at.end() - static_cast<ptrdiff_t>(c.input.rank()), at.end());
      for (size_t i = 0; i < from.size(); ++i) from[i] = c.input[i] == 1 ? 0 : from[i];
      return from;
    });
  }
}

TEST(ExpandTest, RefusesBadShapes) {
  const Tensor x = Iota<float>({3});
  EXPECT_EQ(ErrorOf({"Expand", 13, {x, Ints({-1})}}), "expected shape entries >= 0, got [-1]");
  EXPECT_EQ(ErrorOf({"Expand", 13, {x, Ints({4})}}),
            "shapes [3] and [4] cannot be broadcast together");
  EXPECT_NE(ErrorOf({"Expand", 13, {x, Ints({INT64_MAX, INT64_MAX, 3})}}), "no error");
  EXPECT_NE(ErrorOf({"Expand", 13, {x, Ints({INT64_MIN, 3})}}), "no error");
}

TEST(TileTest, RepeatsAxesOfEveryElementSize) {
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    const Shape shape = {2, 3, 4};
    const Tensor x = Iota<T>(shape);
    const Tensor y = RunTensorOp({"Tile", 13, {x, Ints({2, 1, 3})}});
    ASSERT_EQ(y.shape(), Shape({4, 3, 12}));
    ExpectElements<T>(y, x, [&](std::vector<int64_t> at) {
      for (size_t i = 0; i < 3; ++i) at[i] %= shape[i];
      return at;
    });
  });
  EXPECT_EQ(RunTensorOp({"Tile", 13, {Iota<float>({2, 3}), Ints({0, 2})}}).shape(), Shape({0, 6}));
}

TEST(TileTest, RefusesBadRepeats) {
  const Tensor x = Iota<float>({2, 3});
  EXPECT_EQ(ErrorOf({"Tile", 13, {x, Ints({1})}}),
            "expected a repeat for each axis of [2, 3], got [1]");
  EXPECT_EQ(ErrorOf({"Tile", 13, {x, Ints({1, -1})}}), "expected repeats >= 0, got [1, -1]");
  EXPECT_NE(ErrorOf({"Tile", 13, {x, Ints({INT64_MAX, 1})}}), "no error");
}

TEST(TileTest, RepeatsOneAxisInOpset1) {
  const auto number = [](float value) { return Tensor::Of<float>({1}, {value}); };
  const Tensor y = RunTensorOp({"Tile", 1, {Iota<float>({2, 2}), number(3), number(1)}});
  EXPECT_EQ(y.shape(), Shape({2, 6}));
  EXPECT_EQ(ElementsOf<float>(y), (std::vector<float>{0, 1, 0, 1, 0, 1, 2, 3, 2, 3, 2, 3}));
  for (const float axis : {2.0f, -3.0f, 0.5f, 1e30f}) {
    EXPECT_NE(ErrorOf({"Tile", 1, {Iota<float>({2, 2}), number(3), number(axis)}}), "no error");
  }
}

}  // namespace
}  // namespace tenon
