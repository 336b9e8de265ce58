#include <algorithm>
#include <numeric>

#include "ops/op_cases.h"

namespace tenon {
namespace {

template <class T>
void ExpectTopK(const Shape& shape, int64_t axis, int64_t k, bool largest) {
  Tensor x = Iota<T>(shape);
  for (int64_t i = 0; i < x.size(); ++i) x.data<T>()[i] = static_cast<T>(i * 37 % 23);
  OpCall call{"TopK",
              11,
              {x, Ints({k})},
              MakeAttributes(Attr("axis", axis), Attr("largest", int64_t{largest})),
              2};
  const auto outputs = RunOp(std::move(call));
  ASSERT_TRUE(outputs) << outputs.error().message();
  const Tensor& values = (*outputs)[0].tensor();
  const Tensor& indices = (*outputs)[1].tensor();
  const size_t at_axis = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
  Shape lines = shape;
  lines[at_axis] = 1;
  for (int64_t line = 0; line < lines.NumElements(); ++line) {
    auto at = CoordinatesOf(line, lines);
    std::vector<int64_t> order(static_cast<size_t>(shape[at_axis]));
    std::iota(order.begin(), order.end(), 0);
    const auto value = [&](int64_t i) {
      at[at_axis] = i;
      return x.data<T>()[PositionOf(at, shape)];
    };
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return largest ? value(a) > value(b) : value(a) < value(b);
    });
    for (int64_t j = 0; j < k; ++j) {
      const int64_t index = order[static_cast<size_t>(j)];
      const T expected = value(index);
      at[at_axis] = j;
      const int64_t position = PositionOf(at, values.shape());
      ASSERT_EQ(indices.data<int64_t>()[position], index);
      ASSERT_EQ(values.data<T>()[position], expected);
    }
  }
}

TEST(TopKTest, SortsTheExtremes) {
  for (const bool largest : {true, false}) {
    for (const int64_t axis : {-1, 0, 1}) {
      ExpectTopK<float>({4, 5, 6}, axis, 3, largest);
      ExpectTopK<int64_t>({4, 5, 6}, axis, 4, largest);
    }
    ExpectTopK<uint8_t>({1, 1, 100}, 2, 100, largest);
  }
}

TEST(TopKTest, RefusesBadK) {
  const auto error = [](int64_t k) {
    return ErrorOf({"TopK", 11, {Iota<float>({3}), Ints({k})}, {}, 2});
  };
  EXPECT_EQ(error(4), "expected k in [0, 3], got 4");
  EXPECT_EQ(error(-1), "expected k in [0, 3], got -1");
  EXPECT_EQ(error(INT64_MIN), "expected k in [0, 3], got -9223372036854775808");
  EXPECT_EQ(error(0), "no error");
}

TEST(CumSumTest, AddsUpAlongAnAxis) {
  for (const bool exclusive : {true, false}) {
    for (const bool reverse : {true, false}) {
      for (int64_t axis = -2; axis < 2; ++axis) {
        const Tensor x = Iota<int32_t>({3, 5});
        const Tensor y = RunTensorOp({"CumSum",
                                      14,
                                      {x, Tensor::Of<int64_t>({}, {axis})},
                                      MakeAttributes(Attr("exclusive", int64_t{exclusive}),
                                                     Attr("reverse", int64_t{reverse}))});
        const size_t at_axis = static_cast<size_t>(axis < 0 ? axis + 2 : axis);
        for (int64_t i = 0; i < x.size(); ++i) {
          auto at = CoordinatesOf(i, x.shape());
          const int64_t here = at[at_axis];
          int32_t sum = 0;
          for (int64_t k = 0; k < x.shape()[at_axis]; ++k) {
            at[at_axis] = k;
            const bool counts = (reverse ? k > here : k < here) || (k == here && !exclusive);
            if (counts) sum += x.data<int32_t>()[PositionOf(at, x.shape())];
          }
          ASSERT_EQ(y.data<int32_t>()[i], sum);
        }
      }
    }
  }
  EXPECT_NE(ErrorOf({"CumSum", 14, {Iota<float>({3}), Tensor::Of<int64_t>({}, {1})}}), "no error");
}

}  // namespace
}  // namespace tenon
