#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

template <class T>
void ExpectGrid(std::vector<int64_t> size, bool align) {
  const auto rank = static_cast<int64_t>(size.size()) - 2;
  const Tensor theta = Scattered<T>({size[0], rank, rank + 1});
  const Tensor grid = RunTensorOp({"AffineGrid",
                                   20,
                                   {theta, Tensor::Of<int64_t>({rank + 2}, size)},
                                   MakeAttributes(Attr("align_corners", int64_t{align}))});
  Shape shape = {size[0]};
  for (size_t i = 2; i < size.size(); ++i) shape.Append(size[i]);
  shape.Append(rank);
  ExpectElements<T>(grid, shape, 1e-6, [&](int64_t i) {
    const auto at = CoordinatesOf(i, shape);
    const T* line = theta.data<T>() + (at[0] * rank + at.back()) * (rank + 1);
    double sum = static_cast<double>(line[rank]);
    for (int64_t k = 0; k < rank; ++k) {
      const auto axis = static_cast<size_t>(rank - k);
      const auto n = static_cast<double>(shape[axis]), index = static_cast<double>(at[axis]);
      const double step = align ? 2 / (n - 1) : 2 / n;
      const double position = -1 + (align ? 0 : step / 2) + (index == 0 ? 0 : index * step);
      sum += static_cast<double>(line[k]) * position;
    }
    return sum;
  });
}

TEST(AffineGridTest, TransformsPositions) {
  for (const bool align : {false, true}) {
    ExpectGrid<float>({2, 3, 5, 6}, align);
    ExpectGrid<float>({1, 1, 1, 33}, align);
    ExpectGrid<double>({2, 1, 3, 4, 5}, align);
    ExpectGrid<float>({0, 1, 3, 4}, align);
  }
}

TEST(AffineGridTest, RefusesSizesThatDoNotFit) {
  const auto error = [](const Shape& theta, Tensor size) {
    return ErrorOf({"AffineGrid", 20, {Scattered(theta), std::move(size)}});
  };
  EXPECT_EQ(error({1, 2, 3}, Ints({1, 1, 2, 2})), "no error");
  EXPECT_NE(error({1, 2, 3}, Ints({2, 1, 2, 2})), "no error");
  EXPECT_NE(error({1, 2, 3}, Ints({1, 1, 2, 2, 2})), "no error");
  EXPECT_NE(error({1, 2, 3}, Ints({1, 1, 2})), "no error");
  EXPECT_NE(error({1, 2, 3}, Ints({1, 1, INT64_MAX, INT64_MAX})), "no error");
  EXPECT_NE(error({1, 2, 3}, Ints({1, 1, -1, 2})), "no error");
}

}  // namespace
}  // namespace tenon
