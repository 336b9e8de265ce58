#include "ops/op_cases.h"

namespace tenon {
namespace {

OpCall Call(Tensor x, Tensor lengths, int64_t batch_axis, int64_t time_axis) {
  return {"ReverseSequence",
          10,
          {std::move(x), std::move(lengths)},
          MakeAttributes(Attr("batch_axis", batch_axis), Attr("time_axis", time_axis))};
}

TEST(ReverseSequenceTest, ReversesTheBeginningOfEachSequence) {
  ForEachElementSize([]<class T>(T) {
    for (const size_t batch_axis : {0, 1}) {
      const Shape shape = batch_axis == 0 ? Shape{4, 5, 3} : Shape{5, 4, 3};
      const std::vector<int64_t> lengths = {0, 1, 3, 5};
      const Tensor x = Iota<T>(shape);
      const Tensor y = RunTensorOp(Call(x, Ints({0, 1, 3, 5}), static_cast<int64_t>(batch_axis),
                                        static_cast<int64_t>(1 - batch_axis)));
      ASSERT_EQ(y.shape(), shape);
      ExpectElements<T>(y, x, [&](std::vector<int64_t> i) {
        const int64_t length = lengths[static_cast<size_t>(i[batch_axis])];
        int64_t& step = i[1 - batch_axis];
        if (step < length) step = length - 1 - step;
        return i;
      });
    }
  });
}

TEST(ReverseSequenceTest, RefusesBadLengthsAndAxes) {
  const auto error = [](Tensor lengths, int64_t batch_axis, int64_t time_axis) {
    return ErrorOf(Call(Iota<float>({2, 3}), std::move(lengths), batch_axis, time_axis));
  };
  EXPECT_EQ(error(Ints({1, 4}), 0, 1), "input 1: expected lengths in [0, 3], got 4 at 1");
  EXPECT_NE(error(Ints({INT64_MIN, 1}), 0, 1), "no error");
  EXPECT_NE(error(Ints({1, 1, 1}), 0, 1), "no error");
  EXPECT_NE(error(Ints({1, 1}), 0, 0), "no error");
  EXPECT_NE(error(Ints({1, 1}), 2, 1), "no error");
}

}  // namespace
}  // namespace tenon
