#include "ops/op_cases.h"

namespace tenon {
namespace {

TEST(CenterCropPadTest, CutsAndFrames) {
  ForEachElementSize([]<class T>(T) {
    const Tensor x = Iota<T>({7, 4, 5});
    for (const int64_t height : {0, 1, 4, 7, 8, 12}) {
      for (const int64_t width : {2, 4, 5, 9}) {
        const Tensor y = RunTensorOp({"CenterCropPad",
                                      18,
                                      {x, Ints({width, height})},
                                      MakeAttributes(Attr("axes", std::vector<int64_t>{-1, 0}))});
        ASSERT_EQ(y.shape(), Shape({height, 4, width}));
        for (int64_t i = 0; i < y.size(); ++i) {
          auto at = CoordinatesOf(i, y.shape());
          const auto shift = [](int64_t from, int64_t to) {
            return from >= to ? (from - to) / 2 : -((to - from) / 2);
          };
          at[0] += shift(7, height);
          at[2] += shift(5, width);
          const bool inside = at[0] >= 0 && at[0] < 7 && at[2] >= 0 && at[2] < 5;
          ASSERT_EQ(y.data<T>()[i], inside ? x.data<T>()[PositionOf(at, x.shape())] : T());
        }
      }
    }
  });
}

TEST(CenterCropPadTest, RefusesBadSizes) {
  const auto error = [](Tensor shape) {
    return ErrorOf({"CenterCropPad", 18, {Iota<float>({2, 3}), std::move(shape)}});
  };
  EXPECT_EQ(error(Ints({1})), "input 1: expected 2 sizes, one per axis, got 1");
  EXPECT_NE(error(Ints({1, -1})), "no error");
  EXPECT_NE(error(Ints({INT64_MAX, INT64_MAX})), "no error");
  EXPECT_EQ(error(Ints({0, 5})), "no error");
}

}  // namespace
}  // namespace tenon
