#include "ops/op_cases.h"

namespace tenon {
namespace {

int64_t Wrapped(int64_t index, int64_t dim) { return index < 0 ? index + dim : index; }

TEST(GatherTest, PicksAlongEveryAxis) {
  ForEachElementSize([](auto element) {
    using T = decltype(element);
    for (size_t axis = 0; axis < 3; ++axis) {
      const Tensor x = Iota<T>({4, 5, 6});
      const Tensor indices = Tensor::Of<int64_t>({2, 3}, {0, -1, 3, 2, -4, 1});
      const Tensor y = RunTensorOp(
          {"Gather", 13, {x, indices}, MakeAttributes(Attr("axis", static_cast<int64_t>(axis)))});
      Shape expected;
      for (size_t i = 0; i < axis; ++i) expected.Append(x.shape()[i]);
      expected.Append(2);
      expected.Append(3);
      for (size_t i = axis + 1; i < 3; ++i) expected.Append(x.shape()[i]);
      ASSERT_EQ(y.shape(), expected);
      ExpectElements<T>(y, x, [&](std::vector<int64_t> at) {
        const int64_t index = indices.data<int64_t>()[at[axis] * 3 + at[axis + 1]];
        at[axis] = Wrapped(index, x.shape()[axis]);
        at.erase(at.begin() + static_cast<ptrdiff_t>(axis) + 1);
        return at;
      });
    }
  });
}

TEST(GatherTest, TakesScalarAndInt32Indices) {
  const Tensor x = Iota<float>({3, 2});
  EXPECT_EQ(ElementsOf<float>(RunTensorOp({"Gather", 13, {x, Tensor::Of<int32_t>({}, {-1})}})),
            (std::vector<float>{4, 5}));
  EXPECT_EQ(RunTensorOp({"Gather", 13, {x, Tensor::Of<int32_t>({0}, {})}}).shape(), Shape({0, 2}));
}

TEST(GatherTest, NamesTheIndexOutOfRange) {
  const auto error = [](int64_t index) {
    return ErrorOf({"Gather", 13, {Iota<float>({3, 2}), Ints({0, index})}});
  };
  EXPECT_EQ(error(3), "index 3 at position 1 is out of range [-3, 2] of axis 0");
  EXPECT_EQ(error(-4), "index -4 at position 1 is out of range [-3, 2] of axis 0");
  EXPECT_NE(error(INT64_MIN), "no error");
  EXPECT_NE(error(INT64_MAX), "no error");
  EXPECT_NE(ErrorOf({"Gather", 13, {Iota<float>({0, 2}), Ints({0})}}), "no error");
  EXPECT_NE(ErrorOf({"Gather", 13, {Iota<float>({}), Ints({0})}}), "no error");
}

TEST(GatherElementsTest, PicksByCoordinates) {
  const Tensor x = Iota<int64_t>({3, 4, 5});
  for (size_t axis = 0; axis < 3; ++axis) {
    Tensor indices = Iota<int32_t>({2, 3, 4});
    const int64_t dim = x.shape()[axis];
    for (int64_t i = 0; i < indices.size(); ++i) {
      indices.data<int32_t>()[i] = static_cast<int32_t>(i * 7 % (2 * dim) - dim);
    }
    const Tensor y = RunTensorOp({"GatherElements",
                                  13,
                                  {x, indices},
                                  MakeAttributes(Attr("axis", static_cast<int64_t>(axis)))});
    ASSERT_EQ(y.shape(), indices.shape());
    ExpectElements<int64_t>(y, x, [&](std::vector<int64_t> at) {
      at[axis] = Wrapped(indices.data<int32_t>()[PositionOf(at, indices.shape())], dim);
      return at;
    });
  }
  EXPECT_EQ(ErrorOf({"GatherElements", 13, {Iota<float>({2, 2}), Iota<int64_t>({1, 3})}}),
            "expected indices within data [2, 2] but for axis 0, got [1, 3]");
  EXPECT_EQ(ErrorOf({"GatherElements", 13, {Iota<float>({2}), Ints({2})}}),
            "index 2 at position 0 is out of range [-2, 1] of axis 0");
}

TEST(GatherNDTest, PicksSlicesByTuples) {
  const Tensor x = Iota<float>({2, 3, 4});
  const auto gather = [&](Tensor indices, int64_t batch_dims) {
    return RunTensorOp(
        {"GatherND", 13, {x, std::move(indices)}, MakeAttributes(Attr("batch_dims", batch_dims))});
  };
  const Tensor slices = gather(Tensor::Of<int64_t>({2, 2}, {1, 0, 0, -1}), 0);
  EXPECT_EQ(slices.shape(), Shape({2, 4}));
  EXPECT_EQ(ElementsOf<float>(slices), (std::vector<float>{12, 13, 14, 15, 8, 9, 10, 11}));
  const Tensor batched = gather(Tensor::Of<int64_t>({2, 1}, {2, 1}), 1);
  EXPECT_EQ(ElementsOf<float>(batched), (std::vector<float>{8, 9, 10, 11, 16, 17, 18, 19}));
  const Tensor elements = gather(Tensor::Of<int64_t>({1, 3}, {-1, -1, -1}), 0);
  EXPECT_EQ(elements.shape(), Shape({1}));
  EXPECT_EQ(ElementsOf<float>(elements), std::vector<float>{23});
}

TEST(GatherNDTest, RefusesBadTuples) {
  const Tensor x = Iota<float>({2, 3});
  const auto error = [&](Tensor indices, int64_t batch_dims) {
    return ErrorOf(
        {"GatherND", 13, {x, std::move(indices)}, MakeAttributes(Attr("batch_dims", batch_dims))});
  };
  EXPECT_EQ(error(Tensor::Of<int64_t>({1, 2}, {0, 3}), 0),
            "index 3 at position 1 is out of range [-3, 2] of axis 1");
  EXPECT_NE(error(Tensor::Of<int64_t>({1, 3}, {0, 0, 0}), 0), "no error");
  EXPECT_NE(error(Tensor::Of<int64_t>({1, 2}, {0, 0}), 2), "no error");
  EXPECT_NE(error(Tensor::Of<int64_t>({1, 2}, {0, INT64_MIN}), 0), "no error");
}

}  // namespace
}  // namespace tenon
