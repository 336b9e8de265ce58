#include <cmath>

#include "ops/op_cases.h"

namespace tenon {
namespace {

template <class T>
OpCall RangeCall(T start, T limit, T delta) {
  return {"Range",
          11,
          {Tensor::Of<T>({}, {start}), Tensor::Of<T>({}, {limit}), Tensor::Of<T>({}, {delta})}};
}

TEST(RangeTest, CountsUpAndDown) {
  EXPECT_EQ(ElementsOf<int64_t>(RunTensorOp(RangeCall<int64_t>(1, 8, 3))),
            (std::vector<int64_t>{1, 4, 7}));
  EXPECT_EQ(ElementsOf<int32_t>(RunTensorOp(RangeCall<int32_t>(10, 4, -2))),
            (std::vector<int32_t>{10, 8, 6}));
  EXPECT_EQ(ElementsOf<float>(RunTensorOp(RangeCall<float>(0, 1, 0.25f))),
            (std::vector<float>{0, 0.25f, 0.5f, 0.75f}));
  EXPECT_EQ(RunTensorOp(RangeCall<int64_t>(3, 3, 1)).size(), 0);
  EXPECT_EQ(ElementsOf<int64_t>(RunTensorOp(RangeCall<int64_t>(INT64_MIN, INT64_MAX, INT64_MAX))),
            (std::vector<int64_t>{INT64_MIN, -1, INT64_MAX - 1}));
}

TEST(RangeTest, RefusesRangesWithoutEnd) {
  EXPECT_EQ(ErrorOf(RangeCall<int64_t>(0, 1, 0)), "input 2: expected a step other than 0, got 0");
  EXPECT_NE(ErrorOf(RangeCall<int64_t>(INT64_MIN, INT64_MAX, 1)), "no error");
  EXPECT_NE(ErrorOf(RangeCall<float>(0, INFINITY, 1)), "no error");
  EXPECT_NE(ErrorOf(RangeCall<float>(0, 1, NAN)), "no error");
}

TEST(NonZeroTest, ListsCoordinates) {
  const Tensor y =
      RunTensorOp({"NonZero", 13, {Tensor::Of<float>({2, 3}, {0, 1, NAN, -2, 0, -0.0f})}});
  EXPECT_EQ(y.shape(), Shape({2, 3}));
  EXPECT_EQ(ElementsOf<int64_t>(y), (std::vector<int64_t>{0, 0, 1, 1, 2, 0}));
  EXPECT_EQ(RunTensorOp({"NonZero", 13, {Tensor::Of<bool>({}, {true})}}).shape(), Shape({0, 1}));
}

TEST(TriluTest, KeepsATriangle) {
  for (const int64_t k : {int64_t{0}, int64_t{1}, int64_t{-2}, int64_t{9}, INT64_MIN, INT64_MAX}) {
    for (const bool upper : {true, false}) {
      const Tensor x = Iota<int16_t>({2, 3, 4});
      const Tensor y = RunTensorOp({"Trilu",
                                    14,
                                    {x, Tensor::Of<int64_t>({}, {k})},
                                    MakeAttributes(Attr("upper", int64_t{upper}))});
      for (int64_t i = 0; i < x.size(); ++i) {
        const auto at = CoordinatesOf(i, x.shape());
        const __int128 diagonal = static_cast<__int128>(at[2]) - at[1];
        const bool kept = upper ? diagonal >= k : diagonal <= k;
        ASSERT_EQ(y.data<int16_t>()[i], kept ? x.data<int16_t>()[i] : 0) << k << " " << i;
      }
    }
  }
}

TEST(EyeLikeTest, MarksADiagonal) {
  const auto eye = [](int64_t k) {
    return ElementsOf<int64_t>(RunTensorOp(
        {"EyeLike",
         9,
         {Iota<float>({2, 3})},
         MakeAttributes(Attr("dtype", static_cast<int64_t>(DataType::kInt64)), Attr("k", k))}));
  };
  EXPECT_EQ(eye(0), (std::vector<int64_t>{1, 0, 0, 0, 1, 0}));
  EXPECT_EQ(eye(2), (std::vector<int64_t>{0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(eye(-1), (std::vector<int64_t>{0, 0, 0, 1, 0, 0}));
  EXPECT_EQ(eye(INT64_MIN), std::vector<int64_t>(6, 0));
  EXPECT_EQ(eye(INT64_MAX), std::vector<int64_t>(6, 0));
}

}  // namespace
}  // namespace tenon
