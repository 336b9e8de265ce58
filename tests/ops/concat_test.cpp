#include "ops/op_cases.h"

namespace tenon {
namespace {

TEST(ConcatTest, JoinsAlongEveryAxis) {
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    for (int64_t axis = -3; axis < 3; ++axis) {
      const size_t at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      std::vector<Tensor> inputs;
      std::vector<int64_t> begins = {0};
      OpCall call{"Concat", 13, {}, MakeAttributes(Attr("axis", axis))};
      for (const int64_t size : {2, 0, 40, 1}) {
        Shape shape = {3, 5, 7};
        shape[at] = size;
        inputs.push_back(Iota<T>(shape));
        call.inputs.emplace_back(inputs.back());
        begins.push_back(begins.back() + size);
      }
      const Tensor y = RunTensorOp(std::move(call));
      Shape expected = {3, 5, 7};
      expected[at] = 43;
      ASSERT_EQ(y.shape(), expected);
      for (int64_t i = 0; i < y.size(); ++i) {
        std::vector<int64_t> from = CoordinatesOf(i, expected);
        size_t k = 0;
        while (from[at] >= begins[k + 1]) ++k;
        from[at] -= begins[k];
        ASSERT_EQ(y.data<T>()[i], inputs[k].data<T>()[PositionOf(from, inputs[k].shape())]);
      }
    }
  });
}

TEST(ConcatTest, JoinsLargeTensorsOnSeveralThreads) {
  const Tensor a = Iota<float>({3, 40000});
  const Tensor y = RunTensorOp({"Concat", 13, {a, a}, MakeAttributes(Attr("axis", int64_t{1}))});
  ExpectElements<float>(y, a, [](std::vector<int64_t> at) {
    at[1] %= 40000;
    return at;
  });
}

TEST(ConcatTest, RefusesInputsThatDifferOffAxis) {
  const auto error = [](Shape a, Shape b, int64_t axis) {
    return ErrorOf(
        {"Concat", 13, {Iota<float>(a), Iota<float>(b)}, MakeAttributes(Attr("axis", axis))});
  };
  EXPECT_EQ(error({2, 3}, {2, 4}, 0),
            "input 1: expected size 3 of axis 1 as in the inputs before, got [2, 4]");
  EXPECT_EQ(error({2, 3}, {2}, 0), "input 1: expected rank 2 as of input 0 [2, 3], got [2]");
  EXPECT_EQ(error({2}, {2}, 1), "expected axis in [-1, 0] for rank 1, got 1");
  EXPECT_EQ(error({2}, {2}, INT64_MIN),
            "expected axis in [-1, 0] for rank 1, got -9223372036854775808");
  EXPECT_NE(error({}, {}, 0), "no error");
}

}  // namespace
}  // namespace tenon
