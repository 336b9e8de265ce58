#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

TEST(ShrinkTest, MovesTowardsZero) {
  const Tensor x = Scattered({3, 17});
  const Tensor y =
      RunTensorOp({"Shrink", 9, {x}, MakeAttributes(Attr("bias", 0.25f), Attr("lambd", 1.0f))});
  ExpectElements(y, x.shape(), 1e-7, [&](int64_t i) {
    const double v = x.data<float>()[i];
    return v < -1 ? v + 0.25 : v > 1 ? v - 0.25 : 0;
  });
}

TEST(ShrinkTest, KeepsIntegersExact) {
  const Tensor x = Tensor::Of<int64_t>({5}, {INT64_MIN, -3, 1, 2, (int64_t{1} << 60) + 1});
  const Tensor y =
      RunTensorOp({"Shrink", 9, {x}, MakeAttributes(Attr("bias", 2.0f), Attr("lambd", 1.5f))});
  EXPECT_EQ(ElementsOf<int64_t>(y),
            (std::vector<int64_t>{INT64_MIN + 2, -1, 0, 0, (int64_t{1} << 60) - 1}));
  const Tensor u = Tensor::Of<uint8_t>({3}, {0, 2, 255});
  EXPECT_EQ(
      ElementsOf<uint8_t>(RunTensorOp({"Shrink", 9, {u}, MakeAttributes(Attr("bias", 4.0f))})),
      (std::vector<uint8_t>{0, 0, 251}));
}

}  // namespace
}  // namespace tenon
