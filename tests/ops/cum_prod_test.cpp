#include "ops/op_cases.h"

namespace tenon {
namespace {

template <class T>
void ExpectProducts(const Shape& shape, int64_t axis, bool exclusive, bool reverse) {
  Tensor x = Iota<T>(shape);
  for (int64_t i = 0; i < x.size(); ++i) x.data<T>()[i] = static_cast<T>(i % 3 + 1);
  const Tensor y = RunTensorOp(
      {"CumProd",
       26,
       {x, Tensor::Of<int64_t>({}, {axis})},
       MakeAttributes(Attr("exclusive", int64_t{exclusive}), Attr("reverse", int64_t{reverse}))});
  const auto at_axis = static_cast<size_t>(axis < 0 ? axis + 2 : axis);
  for (int64_t i = 0; i < x.size(); ++i) {
    auto at = CoordinatesOf(i, shape);
    const int64_t here = at[at_axis];
    T product = 1;
    for (int64_t k = 0; k < shape[at_axis]; ++k) {
      at[at_axis] = k;
      const bool counts = (reverse ? k > here : k < here) || (k == here && !exclusive);
      if (counts) product = static_cast<T>(product * x.data<T>()[PositionOf(at, shape)]);
    }
    ASSERT_EQ(y.data<T>()[i], product) << "element " << i;
  }
}

TEST(CumProdTest, MultipliesAlongAnAxis) {
  for (const bool exclusive : {true, false}) {
    for (const bool reverse : {true, false}) {
      for (int64_t axis = -2; axis < 2; ++axis) {
        ExpectProducts<float>({3, 70}, axis, exclusive, reverse);
        ExpectProducts<double>({3, 5}, axis, exclusive, reverse);
        ExpectProducts<uint64_t>({9, 7}, axis, exclusive, reverse);
      }
    }
  }
  EXPECT_NE(ErrorOf({"CumProd", 26, {Iota<float>({3}), Tensor::Of<int64_t>({}, {1})}}), "no error");
}

}  // namespace
}  // namespace tenon
