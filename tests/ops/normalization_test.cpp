#include <gtest/gtest.h>

#include <cmath>

#include "ops/reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

struct Moments {
  double mean = 0, variance = 0, square = 0;
};

Moments MomentsOf(const float* x, int64_t n) {
  Moments m;
  for (int64_t i = 0; i < n; ++i) m.mean += double(x[i]) / double(n);
  for (int64_t i = 0; i < n; ++i) m.square += double(x[i]) * double(x[i]) / double(n);
  for (int64_t i = 0; i < n; ++i) m.variance += std::pow(double(x[i]) - m.mean, 2) / double(n);
  return m;
}

TEST(LayerNormalizationTest, NormalizesFromTheAxisOn) {
  const Tensor x = Scattered({3, 4, 33});
  for (const int64_t axis : {-1, 1, 0}) {
    const int64_t n = axis == -1 ? 33 : axis == 1 ? 132 : 396;
    const Shape row = axis == -1 ? Shape({33}) : axis == 1 ? Shape({4, 33}) : Shape({3, 4, 33});
    const Tensor gamma = Scattered(row, 2), beta = Scattered(row, 3);
    const auto outputs = RunOp({"LayerNormalization",
                                17,
                                {x, gamma, beta},
                                MakeAttributes(Attr("axis", axis), Attr("epsilon", 1e-3f)),
                                3});
    ASSERT_TRUE(outputs) << outputs.error().message();
    ExpectElements((*outputs)[0].tensor(), x.shape(), 1e-5, [&](int64_t i) {
      const Moments m = MomentsOf(x.data<float>() + i / n * n, n);
      return (double(x.data<float>()[i]) - m.mean) / std::sqrt(m.variance + 1e-3) *
                 double(gamma.data<float>()[i % n]) +
             double(beta.data<float>()[i % n]);
    });
    const Tensor& mean = (*outputs)[1].tensor();
    for (int64_t r = 0; r < mean.size(); ++r) {
      EXPECT_NEAR(mean.data<float>()[r], MomentsOf(x.data<float>() + r * n, n).mean, 1e-5);
    }
  }
}

TEST(LayerNormalizationTest, BroadcastsScaleAndBias) {
  const Tensor x = Scattered({2, 3, 4});
  const Tensor scale = Scattered({2, 1, 4}, 2), bias = Scattered({3, 1}, 3);
  ExpectElements(RunTensorOp({"LayerNormalization", 17, {x, scale, bias}}), x.shape(), 1e-5,
                 [&](int64_t i) {
                   const Moments m = MomentsOf(x.data<float>() + i / 4 * 4, 4);
                   return (double(x.data<float>()[i]) - m.mean) / std::sqrt(m.variance + 1e-5) *
                              double(scale.data<float>()[i / 12 * 4 + i % 4]) +
                          double(bias.data<float>()[i / 4 % 3]);
                 });
  const auto failed = RunOp(
      {"LayerNormalization", 17, {x, Scattered({12})}, MakeAttributes(Attr("axis", int64_t{1}))});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "input 1: [12] cannot be broadcast to input 0 [2, 3, 4]");
}

TEST(RmsNormalizationTest, DividesByTheRootMeanSquare) {
  const Tensor x = Scattered({5, 40}), gamma = Scattered({40}, 2);
  ExpectElements(RunTensorOp({"RMSNormalization", 23, {x, gamma}}), x.shape(), 1e-5,
                 [&](int64_t i) {
                   const Moments m = MomentsOf(x.data<float>() + i / 40 * 40, 40);
                   return double(x.data<float>()[i]) / std::sqrt(m.square + 1e-5) *
                          double(gamma.data<float>()[i % 40]);
                 });
}

TEST(BatchNormalizationTest, ScalesAndShiftsChannels) {
  for (const Shape& shape : {Shape({2, 3, 4, 5}), Shape({4, 3}), Shape({1, 3, 7})}) {
    const Tensor x = Scattered(shape), scale = Scattered({3}, 2), bias = Scattered({3}, 3);
    const Tensor mean = Scattered({3}, 4), variance = Tensor::Of<float>({3}, {0.5f, 1.0f, 2.0f});
    const int64_t n = shape.Product(2, shape.rank());
    ExpectElements(RunTensorOp({"BatchNormalization", 15, {x, scale, bias, mean, variance}}), shape,
                   1e-5, [&](int64_t i) {
                     const int64_t c = i / n % 3;
                     return (double(x.data<float>()[i]) - double(mean.data<float>()[c])) /
                                std::sqrt(double(variance.data<float>()[c]) + 1e-5) *
                                double(scale.data<float>()[c]) +
                            double(bias.data<float>()[c]);
                   });
  }
}

TEST(BatchNormalizationTest, NamesAChannelCountThatDiffers) {
  const Tensor three = Scattered({3});
  const auto failed =
      RunOp({"BatchNormalization", 15, {Scattered({1, 4, 2}), three, three, three, three}});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "input 1: expected 4 values, one per channel, got shape [3]");
}

TEST(GroupNormalizationTest, InstancesAndGroupsShareOneFormula) {
  const Tensor x = Scattered({2, 6, 5, 7}), scale = Scattered({6}, 2), bias = Scattered({6}, 3);
  const auto check = [&](const Tensor& y, int64_t channels_per_group) {
    const int64_t n = channels_per_group * 35;
    ExpectElements(y, x.shape(), 1e-5, [&](int64_t i) {
      const Moments m = MomentsOf(x.data<float>() + i / n * n, n);
      const int64_t c = i / 35 % 6;
      return (double(x.data<float>()[i]) - m.mean) / std::sqrt(m.variance + 1e-5) *
                 double(scale.data<float>()[c]) +
             double(bias.data<float>()[c]);
    });
  };
  check(RunTensorOp({"InstanceNormalization", 22, {x, scale, bias}}), 1);
  check(RunTensorOp({"GroupNormalization",
                     21,
                     {x, scale, bias},
                     MakeAttributes(Attr("num_groups", int64_t{2}))}),
        3);
  EXPECT_FALSE(RunOp({"GroupNormalization",
                      21,
                      {x, scale, bias},
                      MakeAttributes(Attr("num_groups", int64_t{4}))}));
  EXPECT_FALSE(RunOp({"GroupNormalization",
                      21,
                      {x, scale, bias},
                      MakeAttributes(Attr("num_groups", int64_t{0}))}));
}

template <class T>
void ExpectScaledGroups() {
  const Tensor x = Scattered<T>({2, 6, 5, 7}), scale = Tensor::Of<T>({3}, {2, -1, 0.5}),
               bias = Tensor::Of<T>({3}, {0, 3, -2});
  const Tensor y = RunTensorOp(
      {"GroupNormalization", 18, {x, scale, bias}, MakeAttributes(Attr("num_groups", int64_t{3}))});
  std::vector<T> wide_scale, wide_bias;
  for (int64_t c = 0; c < 6; ++c) {
    wide_scale.push_back(scale.data<T>()[c / 2]);
    wide_bias.push_back(bias.data<T>()[c / 2]);
  }
  const auto of_channels = [](const std::vector<T>& values) {
    return Tensor::Of<T>({6}, std::span<const T>(values));
  };
  const Tensor expected = RunTensorOp({"GroupNormalization",
                                       21,
                                       {x, of_channels(wide_scale), of_channels(wide_bias)},
                                       MakeAttributes(Attr("num_groups", int64_t{3}))});
  for (int64_t i = 0; i < y.size(); ++i) {
    ASSERT_EQ(y.data<T>()[i], expected.data<T>()[i]) << "element " << i;
  }
  const auto failed = RunOp({"GroupNormalization",
                             18,
                             {x, of_channels(wide_scale), bias},
                             MakeAttributes(Attr("num_groups", int64_t{3}))});
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().message(), "input 1: expected 3 values, one per group, got shape [6]");
}

TEST(GroupNormalizationTest, ScalesGroupsBeforeOpset21) {
  ExpectScaledGroups<float>();
  ExpectScaledGroups<double>();
}

template <class T>
void ExpectLrn() {
  const Tensor x = Scattered<T>({2, 7, 3, 5});
  const Tensor y = RunTensorOp({"LRN",
                                13,
                                {x},
                                MakeAttributes(Attr("size", int64_t{3}), Attr("alpha", 0.5f),
                                               Attr("beta", 0.75f), Attr("bias", 2.0f))});
  ExpectElements<T>(y, x.shape(), 1e-5, [&](int64_t i) {
    const int64_t c = i / 15 % 7;
    double sum = 0;
    for (int64_t k = std::max<int64_t>(c - 1, 0); k <= std::min<int64_t>(c + 1, 6); ++k) {
      sum += std::pow(double(x.data<T>()[i + (k - c) * 15]), 2);
    }
    return double(x.data<T>()[i]) / std::pow(2 + 0.5 / 3 * sum, 0.75);
  });
}

TEST(LrnTest, SumsSquaresOverNeighbouringChannels) {
  ExpectLrn<float>();
  ExpectLrn<double>();
}

}  // namespace
}  // namespace tenon
