#include "ops/op_cases.h"

namespace tenon {
namespace {

template <class T>
int64_t ExpectedIndex(const std::vector<T>& line, bool largest, bool last) {
  int64_t best = 0;
  for (size_t k = 1; k < line.size(); ++k) {
    const T candidate = line[k];
    const T current = line[static_cast<size_t>(best)];
    if (candidate == current ? last : (candidate > current) == largest) {
      best = static_cast<int64_t>(k);
    }
  }
  return best;
}

template <class T>
void ExpectIndices(const Shape& shape, int64_t axis, bool largest, bool keepdims, bool last) {
  Tensor x = Iota<T>(shape);
  for (int64_t i = 0; i < x.size(); ++i) x.data<T>()[i] = static_cast<T>(i * 37 % 11);
  const Tensor y =
      RunTensorOp({largest ? "ArgMax" : "ArgMin",
                   13,
                   {x},
                   MakeAttributes(Attr("axis", axis), Attr("keepdims", int64_t{keepdims}),
                                  Attr("select_last_index", int64_t{last}))});
  const size_t at_axis = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
  Shape kept = shape;
  kept[at_axis] = 1;
  ASSERT_EQ(y.rank(), keepdims ? 3u : 2u);
  ASSERT_EQ(y.size(), kept.NumElements());
  for (int64_t i = 0; i < y.size(); ++i) {
    auto at = CoordinatesOf(i, kept);
    std::vector<T> line;
    for (at[at_axis] = 0; at[at_axis] < shape[at_axis]; ++at[at_axis]) {
      line.push_back(x.data<T>()[PositionOf(at, shape)]);
    }
    ASSERT_EQ(y.data<int64_t>()[i], ExpectedIndex(line, largest, last)) << i;
  }
}

TEST(ArgReduceTest, FindsTheFirstOrLastExtreme) {
  for (const bool largest : {true, false}) {
    for (const bool last : {true, false}) {
      for (int64_t axis = -3; axis < 3; ++axis) {
        ExpectIndices<float>({3, 40, 70}, axis, largest, last, last);
        ExpectIndices<int8_t>({2, 3, 5}, axis, largest, !last, last);
        ExpectIndices<int64_t>({1, 7, 1}, axis, largest, true, last);
      }
    }
  }
}

TEST(ArgReduceTest, RefusesEmptyAxes) {
  EXPECT_EQ(
      ErrorOf({"ArgMax", 13, {Iota<float>({2, 0})}, MakeAttributes(Attr("axis", int64_t{1}))}),
      "axis 1 of [2, 0] has no elements to choose from");
  EXPECT_EQ(
      RunTensorOp({"ArgMax", 13, {Iota<float>({0, 2})}, MakeAttributes(Attr("axis", int64_t{1}))})
          .shape(),
      Shape({0, 1}));
  EXPECT_NE(ErrorOf({"ArgMax", 13, {Iota<float>({})}}), "no error");
}

}  // namespace
}  // namespace tenon
