#include <algorithm>
#include <cmath>

#include "ops/op_cases.h"

namespace tenon {
namespace {

struct Expected {
  std::vector<int64_t> indices, inverse, counts;
};

// Of slices that compare as the vectors do.
template <class T>
Expected Find(const std::vector<std::vector<T>>& slices, bool sorted) {
  std::vector<std::vector<T>> distinct;
  for (const auto& slice : slices) {
    if (std::find(distinct.begin(), distinct.end(), slice) == distinct.end()) {
      distinct.push_back(slice);
    }
  }
  if (sorted) {
    std::sort(distinct.begin(), distinct.end(), [](const auto& a, const auto& b) {
      return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                          [](const T& x, const T& y) { return x < y; });
    });
  }
  Expected expected;
  expected.counts.resize(distinct.size());
  expected.indices.resize(distinct.size(), -1);
  for (size_t i = 0; i < slices.size(); ++i) {
    const auto group = static_cast<size_t>(std::find(distinct.begin(), distinct.end(), slices[i]) -
                                           distinct.begin());
    expected.inverse.push_back(static_cast<int64_t>(group));
    if (expected.counts[group]++ == 0) expected.indices[group] = static_cast<int64_t>(i);
  }
  return expected;
}

template <class T>
void ExpectUnique(const Tensor& x, std::optional<int64_t> axis, bool sorted) {
  OpCall call = {"Unique", 11, {x}, MakeAttributes(Attr("sorted", int64_t{sorted})), 4};
  if (axis) call.attributes.push_back(Attr("axis", *axis));
  const auto outputs = RunOp(std::move(call));
  ASSERT_TRUE(outputs) << outputs.error().message();
  const Shape shape = axis ? x.shape() : Shape{x.size()};
  const auto at_axis = static_cast<size_t>(!axis ? 0 : *axis < 0 ? *axis + 3 : *axis);
  std::vector<std::vector<T>> slices(static_cast<size_t>(shape[at_axis]));
  for (int64_t i = 0; i < x.size(); ++i) {
    const auto slice = static_cast<size_t>(CoordinatesOf(i, shape)[at_axis]);
    slices[slice].push_back(x.data<T>()[i]);
  }
  const Expected expected = Find(slices, sorted);
  EXPECT_EQ(ElementsOf<int64_t>((*outputs)[1].tensor()), expected.indices);
  EXPECT_EQ(ElementsOf<int64_t>((*outputs)[2].tensor()), expected.inverse);
  EXPECT_EQ(ElementsOf<int64_t>((*outputs)[3].tensor()), expected.counts);
  const Tensor& y = (*outputs)[0].tensor();
  Shape y_shape = shape;
  y_shape[at_axis] = static_cast<int64_t>(expected.indices.size());
  ASSERT_EQ(y.shape(), y_shape);
  ExpectElements<T>(y, x.Reshaped(shape), [&](std::vector<int64_t> i) {
    i[at_axis] = expected.indices[static_cast<size_t>(i[at_axis])];
    return i;
  });
}

template <class T>
Tensor Repeating(const Shape& shape, int64_t period) {
  Tensor x = Iota<T>(shape);
  const Tensor values = Iota<T>({period});
  for (int64_t i = 0; i < x.size(); ++i) {
    x.data<T>()[i] = values.data<T>()[(i * i + 3) % period];
  }
  return x;
}

TEST(UniqueTest, FindsDistinctElementsAndSlices) {
  ForEachElementSize([]<class T>(T) {
    for (const bool sorted : {true, false}) {
      ExpectUnique<T>(Repeating<T>({3, 4, 5}, 7), std::nullopt, sorted);
      ExpectUnique<T>(Repeating<T>({1}, 1), std::nullopt, sorted);
      for (int64_t axis = -3; axis < 3; ++axis) {
        ExpectUnique<T>(Repeating<T>({3, 4, 5}, 7), axis, sorted);
        ExpectUnique<T>(Repeating<T>({4, 4, 4}, 2), axis, sorted);
      }
    }
  });
  ExpectUnique<bool>(Repeating<bool>({9}, 2), std::nullopt, true);
}

TEST(UniqueTest, SortsNansLastAsOne) {
  const Tensor x = Tensor::Of<float>({6}, {NAN, 1, -INFINITY, NAN, INFINITY, 1});
  const auto outputs = RunOp({"Unique", 11, {x}, {}, 4}).value();
  EXPECT_EQ(outputs[0].tensor().size(), 4);
  EXPECT_TRUE(std::isnan(outputs[0].tensor().data<float>()[3]));
  EXPECT_EQ(ElementsOf<int64_t>(outputs[1].tensor()), (std::vector<int64_t>{2, 1, 4, 0}));
  EXPECT_EQ(ElementsOf<int64_t>(outputs[3].tensor()), (std::vector<int64_t>{1, 2, 1, 2}));
}

TEST(UniqueTest, OrdersHalves) {
  const Tensor halves =
      Tensor::Of<Float16>({4}, {Float16(2.0f), Float16(-1.0f), Float16(2.0f), Float16(0.5f)});
  const auto outputs = RunOp({"Unique", 11, {halves}, {}, 4}).value();
  EXPECT_EQ(ElementsOf<int64_t>(outputs[1].tensor()), (std::vector<int64_t>{1, 3, 0}));
}

TEST(UniqueTest, TakesEmptyTensorsAndRefusesBadAxes) {
  const auto outputs = RunOp({"Unique", 11, {Iota<float>({0})}, {}, 4}).value();
  for (const Value& output : outputs) EXPECT_EQ(output.tensor().shape(), Shape({0}));
  for (const int64_t axis : {int64_t{2}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(ErrorOf({"Unique", 11, {Iota<float>({2, 2})}, MakeAttributes(Attr("axis", axis))}),
              "no error");
  }
}

}  // namespace
}  // namespace tenon
