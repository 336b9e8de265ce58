#include <gtest/gtest.h>

#include "ops/op_cases.h"
#include "ops/reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

template <class T>
void CheckClip() {
  const Tensor x = Tensor::Of<T>({5}, {T(0), T(1), T(2), T(3), T(4)});
  const Value low = Tensor::Of<T>({}, {T(1)}), high = Tensor::Of<T>({}, {T(3)});
  const auto values = [](const Tensor& y) {
    return std::vector<T>(y.data<T>(), y.data<T>() + y.size());
  };
  EXPECT_EQ(values(RunTensorOp({"Clip", 13, {x, low, high}})), (std::vector<T>{1, 1, 2, 3, 3}));
  EXPECT_EQ(values(RunTensorOp({"Clip", 13, {x, low}})), (std::vector<T>{1, 1, 2, 3, 4}));
  EXPECT_EQ(values(RunTensorOp({"Clip", 13, {x, Value(), high}})), (std::vector<T>{0, 1, 2, 3, 3}));
  EXPECT_EQ(values(RunTensorOp({"Clip", 13, {x, high, low}})), (std::vector<T>(5, T(1))));
}

TEST(ClipTest, BoundsEveryType) {
  CheckClip<float>();
  CheckClip<double>();
  CheckClip<int8_t>();
  CheckClip<int32_t>();
  CheckClip<int64_t>();
  CheckClip<uint8_t>();
  CheckClip<uint64_t>();
}

TEST(ClipTest, OldVersionsTakeAttributes) {
  const Tensor y = RunTensorOp({"Clip",
                                6,
                                {Tensor::Of<float>({3}, {-1.0f, 3.0f, 9.0f})},
                                MakeAttributes(Attr("min", 0.0f), Attr("max", 6.0f))});
  EXPECT_EQ(y.data<float>()[0], 0);
  EXPECT_EQ(y.data<float>()[1], 3);
  EXPECT_EQ(y.data<float>()[2], 6);
}

TEST(ClipTest, BoundsMustBeScalars) {
  const auto failed = RunOp({"Clip", 13, {Scattered({2}), Scattered({2})}});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "input 1: expected a scalar, got shape [2]");
}

TEST(DropoutTest, KeepsEverythingInInference) {
  const Tensor x = Scattered({2, 3});
  for (const int opset : {6, 7, 10, 12, 13}) {
    const Tensor y = RunTensorOp({"Dropout", opset, {x}});
    ExpectElements(y, x.shape(), 0, [&](int64_t i) { return double(x.data<float>()[i]); });
  }
  const auto outputs = RunOp({"Dropout", 13, {x}, {}, 2});
  ASSERT_TRUE(outputs);
  EXPECT_TRUE((*outputs)[1].tensor().data<bool>()[5]);
}

// The first numbers of NumPy's RandomState(0).uniform() are 0.549, 0.715, 0.603, 0.545, 0.424.
TEST(DropoutTest, DropsWhatTheSeedSaysInTraining) {
  const Tensor x = Tensor::Of<float>({5}, {1, 2, 3, 4, 5});
  const auto outputs = RunOp({"Dropout",
                              13,
                              {x, Tensor::Of<float>({}, {0.5f}), Tensor::Of<bool>({}, {true})},
                              MakeAttributes(Attr("seed", int64_t{0})),
                              2});
  ASSERT_TRUE(outputs);
  EXPECT_EQ(ElementsOf<float>((*outputs)[0].tensor()), (std::vector<float>{2, 4, 6, 8, 0}));
  const bool* mask = (*outputs)[1].tensor().data<bool>();
  EXPECT_EQ(std::vector<bool>(mask, mask + 5), (std::vector<bool>{1, 1, 1, 1, 0}));
  EXPECT_EQ(ErrorOf({"Dropout", 13, {x, Tensor::Of<float>({}, {1}), Tensor::Of<bool>({}, {true})}}),
            "input 1: expected a ratio in [0, 1), got 1");
}

}  // namespace
}  // namespace tenon
