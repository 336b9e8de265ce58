#include "tensor/shape.h"

#include <gtest/gtest.h>

#include <cstdint>

namespace tenon {
namespace {

TEST(ShapeTest, HoldsAnyRankAndCopies) {
  for (size_t rank : {0, 1, 7, 8, 9, 40}) {
    Shape shape(rank, 1);
    for (size_t i = 0; i < rank; ++i) shape[i] = static_cast<int64_t>(i % 3 + 1);
    Shape copy = shape;
    EXPECT_EQ(copy, shape);
    Shape moved = std::move(copy);
    EXPECT_EQ(moved, shape);
    EXPECT_EQ(copy.rank(), 0u);  // NOLINT(bugprone-use-after-move): the state is specified
    moved.Append(5);
    EXPECT_EQ(moved.rank(), rank + 1);
    EXPECT_EQ(moved.back(), 5);
    EXPECT_FALSE(moved == shape);
  }
}

TEST(ShapeTest, CountsElementsOrSaysWhyNot) {
  EXPECT_EQ(Shape({}).CheckedNumElements().value(), 1);
  EXPECT_EQ(Shape({2, 0, 3}).CheckedNumElements().value(), 0);
  EXPECT_EQ(Shape({2, 3}).CheckedNumElements().value(), 6);
  EXPECT_EQ(Shape({2, -1}).CheckedNumElements().error().message(),
            "expected dimensions >= 0, got [2, -1]");
  EXPECT_FALSE(Shape({INT64_MAX, 2}).CheckedNumElements());
  // Nothing is stored, yet strides of such a tensor would overflow.
  EXPECT_FALSE(Shape({INT64_MAX, 2, 0}).CheckedNumElements());
}

TEST(ShapeTest, NormalizesAxes) {
  EXPECT_EQ(NormalizeAxis(-1, 3).value(), 2u);
  EXPECT_EQ(NormalizeAxis(2, 3).value(), 2u);
  EXPECT_EQ(NormalizeAxis(3, 3).error().message(), "expected axis in [-3, 2] for rank 3, got 3");
  EXPECT_FALSE(NormalizeAxis(INT64_MIN, 3));
  EXPECT_FALSE(NormalizeAxis(0, 0));
}

}  // namespace
}  // namespace tenon
