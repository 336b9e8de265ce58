#include "ops/op_cases.h"

namespace tenon {
namespace {

TEST(DepthToSpaceTest, MovesChannelsIntoBlocks) {
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    const Tensor x = Iota<T>({2, 8, 3, 5});
    for (const std::string mode : {"DCR", "CRD"}) {
      const Tensor y =
          RunTensorOp({"DepthToSpace",
                       13,
                       {x},
                       MakeAttributes(Attr("blocksize", int64_t{2}), Attr("mode", mode))});
      ASSERT_EQ(y.shape(), Shape({2, 2, 6, 10}));
      ExpectElements<T>(y, x, [&](const std::vector<int64_t>& at) {
        const int64_t offset = at[2] % 2 * 2 + at[3] % 2;
        const int64_t channel = mode == "DCR" ? offset * 2 + at[1] : at[1] * 4 + offset;
        return std::vector<int64_t>{at[0], channel, at[2] / 2, at[3] / 2};
      });
    }
  });
}

TEST(SpaceToDepthTest, UndoesDepthToSpace) {
  const Tensor x = Iota<float>({1, 9, 2, 2});
  const Tensor wide =
      RunTensorOp({"DepthToSpace", 13, {x}, MakeAttributes(Attr("blocksize", int64_t{3}))});
  const Tensor deep =
      RunTensorOp({"SpaceToDepth", 13, {wide}, MakeAttributes(Attr("blocksize", int64_t{3}))});
  ASSERT_EQ(deep.shape(), x.shape());
  EXPECT_EQ(ElementsOf<float>(deep), ElementsOf<float>(x));
}

TEST(DepthToSpaceTest, RefusesSizesThatDoNotDivide) {
  const auto error = [](const char* op, Shape shape, int64_t block) {
    return ErrorOf({op, 13, {Iota<float>(shape)}, MakeAttributes(Attr("blocksize", block))});
  };
  EXPECT_EQ(error("DepthToSpace", {1, 6, 1, 1}, 2),
            "input 0: expected a multiple of 4 channels, got 6");
  EXPECT_EQ(error("SpaceToDepth", {1, 1, 3, 2}, 2),
            "input 0: expected a multiple of 2 rows, got 3");
  EXPECT_EQ(error("DepthToSpace", {1, 4, 1, 1}, 0),
            "attribute 'blocksize': expected at least 1, got 0");
  EXPECT_NE(error("DepthToSpace", {1, 4, 1, 1}, INT64_MAX), "no error");
  EXPECT_NE(error("DepthToSpace", {4, 1, 1}, 1), "no error");
}

}  // namespace
}  // namespace tenon
