#include "ops/op_cases.h"

namespace tenon {
namespace {

// Python's slice.indices and range, but for the start: ONNX clamps it to 0 from below.
std::vector<int64_t> SelectedIndices(int64_t start, int64_t end, int64_t step, int64_t size) {
  const __int128 n = size;
  __int128 first = start, last = end;
  const __int128 low = step < 0 ? -1 : 0, high = step < 0 ? n - 1 : n;
  if (first < 0) first += n;
  if (last < 0) last += n;
  first = first < 0 ? 0 : first > high ? high : first;
  last = last < low ? low : last > high ? high : last;
  std::vector<int64_t> selected;
  for (__int128 i = first; step > 0 ? i < last : i > last; i += step) {
    selected.push_back(static_cast<int64_t>(i));
  }
  return selected;
}

constexpr int64_t kEnds[] = {0, 1, 3, 6, 7, 9, -1, -2, -7, -8, INT64_MAX, INT64_MIN, INT32_MAX};
constexpr int64_t kSteps[] = {1, 2, 5, -1, -3, INT64_MAX, INT64_MIN};

TEST(SliceTest, SelectsWhatOnnxSays) {
  const Tensor x = Iota<int16_t>({3, 7});
  for (const int64_t start : kEnds) {
    for (const int64_t end : kEnds) {
      for (const int64_t step : kSteps) {
        const auto selected = SelectedIndices(start, end, step, 7);
        const Tensor y =
            RunTensorOp({"Slice", 13, {x, Ints({start}), Ints({end}), Ints({-1}), Ints({step})}});
        ASSERT_EQ(y.shape(), Shape({3, static_cast<int64_t>(selected.size())}))
            << start << ":" << end << ":" << step;
        ExpectElements<int16_t>(y, x, [&](std::vector<int64_t> at) {
          at[1] = selected[static_cast<size_t>(at[1])];
          return at;
        });
      }
    }
  }
}

TEST(SliceTest, SlicesSeveralAxesOfEveryElementSize) {
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    const Tensor x = Iota<T>({4, 5, 6});
    const Tensor y = RunTensorOp(
        {"Slice", 13, {x, Ints({1, -1}), Ints({4, INT64_MIN}), Ints({0, 2}), Ints({1, -2})}});
    ASSERT_EQ(y.shape(), Shape({3, 5, 3}));
    ExpectElements<T>(y, x, [](std::vector<int64_t> at) {
      return std::vector<int64_t>{at[0] + 1, at[1], 5 - 2 * at[2]};
    });
  });
}

TEST(SliceTest, TakesAttributesInVersion1) {
  using List = std::vector<int64_t>;
  const Tensor x = Iota<float>({4, 5});
  const Tensor y = RunTensorOp(
      {"Slice", 1, {x}, MakeAttributes(Attr("starts", List{1, -3}), Attr("ends", List{9, -1}))});
  ASSERT_EQ(y.shape(), Shape({3, 2}));
  ExpectElements<float>(y, x, [](std::vector<int64_t> at) {
    return std::vector<int64_t>{at[0] + 1, at[1] + 2};
  });
}

TEST(SliceTest, RefusesBadAxesAndSteps) {
  const Tensor x = Iota<float>({4, 5});
  const auto error = [&](Tensor axes, Tensor steps) {
    return ErrorOf({"Slice", 13, {x, Ints({0}), Ints({1}), std::move(axes), std::move(steps)}});
  };
  EXPECT_EQ(error(Ints({2}), Ints({1})), "expected axis in [-2, 1] for rank 2, got 2");
  EXPECT_EQ(error(Ints({0}), Ints({0})), "expected a step other than 0 for axis 0, got 0");
  EXPECT_EQ(error(Ints({0}), Ints({1, 1})),
            "expected as many starts, ends, axes and steps, got 1, 1, 1, 2");
  EXPECT_EQ(ErrorOf({"Slice", 13, {x, Ints({0, 0}), Ints({1, 1}), Ints({1, -1})}}),
            "axis 1 is given twice");
  EXPECT_EQ(ErrorOf({"Slice", 13, {x, Ints({0, 0, 0}), Ints({1, 1, 1})}}),
            "expected axis in [-2, 1] for rank 2, got 2");
}

}  // namespace
}  // namespace tenon
