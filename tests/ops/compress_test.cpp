#include "ops/op_cases.h"

namespace tenon {
namespace {

Tensor Condition(std::initializer_list<bool> values) {
  return Tensor::Of<bool>({static_cast<int64_t>(values.size())}, values);
}

TEST(CompressTest, KeepsSelectedSlices) {
  ForEachElementSize([]<class T>(T) {
    const Tensor x = Iota<T>({3, 4, 2});
    for (const int64_t axis : {-3, -2, 0, 1}) {
      const Tensor y = RunTensorOp({"Compress",
                                    11,
                                    {x, Condition({false, true, true})},
                                    MakeAttributes(Attr("axis", axis))});
      const auto at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
      Shape expected = x.shape();
      expected[at] = 2;
      ASSERT_EQ(y.shape(), expected);
      ExpectElements<T>(y, x, [&](std::vector<int64_t> i) {
        i[at] += 1;
        return i;
      });
    }
  });
}

TEST(CompressTest, FlattensWithoutAxis) {
  const Tensor x = Iota<float>({2, 3});
  const Tensor y = RunTensorOp({"Compress", 9, {x, Condition({true, false, false, false, true})}});
  EXPECT_EQ(ElementsOf<float>(y), (std::vector<float>{0, 4}));
  const Tensor none = RunTensorOp({"Compress", 9, {x, Condition({})}});
  EXPECT_EQ(none.shape(), Shape({0}));
}

TEST(CompressTest, DoesNotUseTheConditionBeyondTheAxis) {
  const Tensor y = RunTensorOp({"Compress",
                                11,
                                {Iota<float>({2, 3}), Condition({false, true, true})},
                                MakeAttributes(Attr("axis", int64_t{0}))});
  EXPECT_EQ(y.shape(), Shape({1, 3}));
  EXPECT_EQ(y.values<float>()[0], 3);
}

TEST(CompressTest, RefusesToSelectWhatIsNotThere) {
  const auto error = [](Tensor condition, int64_t axis) {
    return ErrorOf({"Compress",
                    11,
                    {Iota<float>({2, 3}), std::move(condition)},
                    MakeAttributes(Attr("axis", axis))});
  };
  EXPECT_EQ(error(Condition({true, false, false}), 0), "no error");
  EXPECT_NE(error(Condition({true}), 2), "no error");
  EXPECT_NE(error(Condition({true}), INT64_MIN), "no error");
}

}  // namespace
}  // namespace tenon
