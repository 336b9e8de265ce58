#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

template <class T>
void ExpectNormalized(const Shape& shape, int64_t axis, int64_t p) {
  Tensor x = Scattered<T>(shape);
  const auto at = static_cast<size_t>(axis < 0 ? axis + 3 : axis);
  // One line of zeros, which stays as it is.
  for (int64_t i = 0; i < shape[at]; ++i) {
    std::vector<int64_t> zero(3, 0);
    zero[at] = i;
    x.data<T>()[PositionOf(zero, shape)] = 0;
  }
  const Tensor y =
      RunTensorOp({"LpNormalization", 22, {x}, MakeAttributes(Attr("axis", axis), Attr("p", p))});
  ExpectElements<T>(y, shape, 1e-6, [&](int64_t i) {
    std::vector<int64_t> position = CoordinatesOf(i, shape);
    double sum = 0;
    for (position[at] = 0; position[at] < shape[at]; ++position[at]) {
      const auto v = static_cast<double>(x.data<T>()[PositionOf(position, shape)]);
      sum += p == 1 ? std::abs(v) : v * v;
    }
    const double norm = p == 1 ? sum : std::sqrt(sum);
    return norm == 0 ? 0 : static_cast<double>(x.data<T>()[i]) / norm;
  });
}

TEST(LpNormalizationTest, DividesByTheNorm) {
  for (int64_t axis = -3; axis < 3; ++axis) {
    for (const int64_t p : {1, 2}) {
      ExpectNormalized<float>({3, 5, 70}, axis, p);
      ExpectNormalized<double>({2, 1, 3}, axis, p);
    }
  }
}

TEST(LpNormalizationTest, RefusesOtherNorms) {
  EXPECT_EQ(
      ErrorOf({"LpNormalization", 1, {Iota<float>({3})}, MakeAttributes(Attr("p", int64_t{3}))}),
      "attribute 'p': expected 1 or 2, got 3");
}

}  // namespace
}  // namespace tenon
