#include <gtest/gtest.h>

#include "ops/run_op.h"

namespace tenon {
namespace {

Shape IntsOf(const Tensor& tensor) { return IntegersOf(tensor).value(); }

TEST(ShapeOpTest, ReturnsTheDimensionsInRange) {
  const Tensor x = Tensor::Allocate(DataType::kFloat, {2, 3, 4}).value();
  EXPECT_EQ(IntsOf(RunTensorOp({"Shape", 15, {x}})), Shape({2, 3, 4}));
  struct Case {
    int64_t start, end;
    Shape expected;
  };
  const Case cases[] = {{1, 3, {3, 4}}, {-1, 9, {4}}, {0, -1, {2, 3}}, {2, 1, {}}, {-9, 1, {2}}};
  for (const Case& c : cases) {
    const Tensor y =
        RunTensorOp({"Shape", 15, {x}, MakeAttributes(Attr("start", c.start), Attr("end", c.end))});
    EXPECT_EQ(IntsOf(y).dims().size(), c.expected.rank()) << c.start << " " << c.end;
    EXPECT_EQ(y.size() == 0 ? Shape() : IntsOf(y), c.expected) << c.start << " " << c.end;
  }
}

TEST(SizeOpTest, CountsElements) {
  const Tensor x = Tensor::Allocate(DataType::kString, {2, 0, 4}).value();
  EXPECT_EQ(*RunTensorOp({"Size", 13, {x}}).data<int64_t>(), 0);
  EXPECT_EQ(*RunTensorOp({"Size", 13, {Tensor::Of<float>({}, {1})}}).data<int64_t>(), 1);
}

}  // namespace
}  // namespace tenon
