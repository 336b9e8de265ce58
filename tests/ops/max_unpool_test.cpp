#include "ops/op_cases.h"

namespace tenon {
namespace {

OpCall Call(Tensor x, Tensor indices, Value shape = {}) {
  return {"MaxUnpool",
          11,
          {std::move(x), std::move(indices), std::move(shape)},
          MakeAttributes(Attr("kernel_shape", std::vector<int64_t>{2, 2}),
                         Attr("strides", std::vector<int64_t>{2, 2}))};
}

Tensor Indices(std::initializer_list<int64_t> values) {
  return Tensor::Of<int64_t>({1, 1, 2, 2}, values);
}

TEST(MaxUnpoolTest, PutsElementsBack) {
  const Tensor x = Tensor::Of<float>({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor y = RunTensorOp(Call(x, Indices({5, 7, 13, 15})));
  EXPECT_EQ(y.shape(), Shape({1, 1, 4, 4}));
  EXPECT_EQ(ElementsOf<float>(y),
            (std::vector<float>{0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0, 0, 3, 0, 4}));
}

TEST(MaxUnpoolTest, FillsALargerOutput) {
  const Tensor x = Tensor::Of<double>({1, 1, 2, 2}, {1, 2, 3, 4});
  const Tensor y = RunTensorOp(Call(x, Indices({5, 7, 13, 15}), Ints({1, 1, 5, 5})));
  EXPECT_EQ(ElementsOf<double>(y), (std::vector<double>{0, 0, 0, 0, 0, 0, 1, 0, 2, 0, 0, 0, 0,
                                                        0, 0, 0, 3, 0, 4, 0, 0, 0, 0, 0, 0}));
}

TEST(MaxUnpoolTest, RefusesIndicesOutOfRange) {
  const Tensor x = Iota<float>({1, 1, 2, 2});
  EXPECT_EQ(ErrorOf(Call(x, Indices({0, 1, 2, 16}))),
            "input 1: expected indices in [0, 16), got 16 at 3");
  for (const int64_t bad : {int64_t{-1}, INT64_MIN, INT64_MAX}) {
    EXPECT_NE(ErrorOf(Call(x, Indices({0, bad, 2, 3}))), "no error");
  }
  EXPECT_NE(ErrorOf(Call(x, Indices({0, 1, 2, 3}), Ints({1, 1, 3, 4}))), "no error");
  EXPECT_NE(ErrorOf(Call(x, Indices({0, 1, 2, 3}), Ints({1, 1, INT64_MAX, INT64_MAX}))),
            "no error");
  EXPECT_NE(ErrorOf(Call(x, Ints({1}))), "no error");
}

}  // namespace
}  // namespace tenon
