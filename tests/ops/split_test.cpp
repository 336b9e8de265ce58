#include "ops/op_cases.h"

namespace tenon {
namespace {

void ExpectPieces(OpCall call, size_t axis, const std::vector<int64_t>& sizes) {
  const Tensor x = call.inputs[0].tensor();
  call.output_count = sizes.size();
  const auto outputs = RunOp(std::move(call));
  ASSERT_TRUE(outputs) << outputs.error().message();
  int64_t begin = 0;
  for (size_t i = 0; i < sizes.size(); ++i) {
    const Tensor& y = (*outputs)[i].tensor();
    Shape expected = x.shape();
    expected[axis] = sizes[i];
    ASSERT_EQ(y.shape(), expected);
    ExpectElements<float>(y, x, [&](std::vector<int64_t> at) {
      at[axis] += begin;
      return at;
    });
    begin += sizes[i];
  }
}

TEST(SplitTest, CutsByEveryVersionsRules) {
  const Tensor x = Iota<float>({4, 6, 3});
  const auto axis = Attr("axis", int64_t{1});
  const auto attributes = [](auto... more) {
    return MakeAttributes(Attr("axis", int64_t{1}), std::move(more)...);
  };
  const std::vector<int64_t> uneven = {1, 0, 5};
  ExpectPieces({"Split", 11, {x}, attributes(Attr("split", uneven))}, 1, uneven);
  ExpectPieces({"Split", 11, {x}, attributes()}, 1, {3, 3});
  ExpectPieces({"Split", 13, {x, Ints({1, 0, 5})}, attributes()}, 1, uneven);
  ExpectPieces({"Split", 13, {x}, attributes()}, 1, {2, 2, 2});
  ExpectPieces({"Split", 18, {x}, attributes(Attr("num_outputs", int64_t{4}))}, 1, {2, 2, 2, 0});
  ExpectPieces({"Split", 18, {Iota<float>({4, 7})}, attributes(Attr("num_outputs", int64_t{3}))}, 1,
               {3, 3, 1});
  ExpectPieces({"Split", 13, {x}}, 0, {1, 1, 1, 1});
}

TEST(SplitTest, RefusesSizesThatDoNotFit) {
  const Tensor x = Iota<float>({6});
  const auto error = [&](Value sizes, size_t outputs) {
    return ErrorOf({"Split", 13, {x, std::move(sizes)}, {}, outputs});
  };
  EXPECT_EQ(error(Ints({2, 3}), 2), "expected sizes that add up to 6, got [2, 3]");
  EXPECT_EQ(error(Ints({7, -1}), 2), "expected sizes >= 0, got [7, -1]");
  EXPECT_EQ(error(Ints({6}), 2), "expected a size for each of the 2 outputs, got [6]");
  EXPECT_NE(error(Ints({INT64_MAX, INT64_MAX, 8}), 3), "no error");
  EXPECT_EQ(error({}, 4), "an axis of size 6 cannot be split into 4 equal parts");
  EXPECT_EQ(ErrorOf({"Split", 18, {x}, MakeAttributes(Attr("num_outputs", int64_t{5})), 5}),
            "an axis of size 6 cannot be split into 5 parts");
}

TEST(SplitTest, TakesSizesAsFloatsInOpset1) {
  const auto outputs = RunOp({"Split",
                              1,
                              {Iota<float>({5}), Tensor::Of<float>({2}, {2, 3})},
                              MakeAttributes(Attr("axis", int64_t{0})),
                              2});
  ASSERT_TRUE(outputs) << outputs.error().message();
  EXPECT_EQ(ElementsOf<float>((*outputs)[1].tensor()), (std::vector<float>{2, 3, 4}));
  EXPECT_NE(ErrorOf({"Split",
                     1,
                     {Iota<float>({5}), Tensor::Of<float>({2}, {2.5f, 2.5f})},
                     MakeAttributes(Attr("axis", int64_t{0})),
                     2}),
            "no error");
}

}  // namespace
}  // namespace tenon
