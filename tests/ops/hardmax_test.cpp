#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

// One for the first maximum of the elements [start, start + n * stride).
void Mark(const Tensor& x, std::vector<double>& y, int64_t start, int64_t n, int64_t stride) {
  int64_t best = start;
  for (int64_t i = start; i < start + n * stride; i += stride) {
    if (x.data<float>()[i] > x.data<float>()[best]) best = i;
  }
  y[static_cast<size_t>(best)] = 1;
}

TEST(HardmaxTest, MarksTheFirstMaximumAlongAnAxis) {
  const Shape shape = {3, 5, 4};
  Tensor x = Scattered(shape);
  x.data<float>()[7] = x.data<float>()[3] = 5;
  for (int64_t axis = -3; axis < 3; ++axis) {
    const auto at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
    std::vector<double> expected(60, 0);
    const int64_t stride = shape.Product(at + 1, 3);
    for (int64_t row = 0; row < 60 / shape[at]; ++row) {
      Mark(x, expected, row / stride * stride * shape[at] + row % stride, shape[at], stride);
    }
    const Tensor y = RunTensorOp({"Hardmax", 13, {x}, MakeAttributes(Attr("axis", axis))});
    ExpectElements(y, shape, 0, [&](int64_t i) { return expected[static_cast<size_t>(i)]; });
  }
}

TEST(HardmaxTest, FlattensBeforeOpset13) {
  const Shape shape = {3, 5, 4};
  const Tensor x = Scattered(shape);
  for (size_t axis = 0; axis < 3; ++axis) {
    std::vector<double> expected(60, 0);
    const int64_t n = shape.Product(axis, 3);
    for (int64_t row = 0; row < 60 / n; ++row) Mark(x, expected, row * n, n, 1);
    const Tensor y =
        RunTensorOp({"Hardmax", 11, {x}, MakeAttributes(Attr("axis", static_cast<int64_t>(axis)))});
    ExpectElements(y, shape, 0, [&](int64_t i) { return expected[static_cast<size_t>(i)]; });
  }
}

TEST(HardmaxTest, TakesTheFirstNan) {
  const Tensor x = Tensor::Of<double>({4}, {INFINITY, NAN, 1, NAN});
  EXPECT_EQ(ElementsOf<double>(RunTensorOp({"Hardmax", 13, {x}})),
            (std::vector<double>{0, 1, 0, 0}));
  EXPECT_NE(ErrorOf({"Hardmax", 13, {x}, MakeAttributes(Attr("axis", int64_t{1}))}), "no error");
}

}  // namespace
}  // namespace tenon
