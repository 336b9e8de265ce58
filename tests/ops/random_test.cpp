#include <cmath>

#include "ops/op_cases.h"
#include "ops/tensor/random_numbers.h"

namespace tenon {
namespace {

constexpr int64_t kCount = 40'000;

OpCall RandomCall(const std::string& op, std::vector<Attribute> attributes) {
  OpCall call{op, 0, {}, std::move(attributes)};
  call.attributes.push_back(Attr("shape", std::vector<int64_t>{kCount}));
  return call;
}

struct Moments {
  double mean = 0, deviation = 0;
};

Moments MomentsOf(const std::vector<float>& values) {
  Moments moments;
  for (const float value : values) moments.mean += value;
  moments.mean /= static_cast<double>(values.size());
  for (const float value : values) {
    moments.deviation += (value - moments.mean) * (value - moments.mean);
  }
  moments.deviation = std::sqrt(moments.deviation / static_cast<double>(values.size()));
  return moments;
}

TEST(RandomTest, FollowsTheDistribution) {
  const auto normal = ElementsOf<float>(
      RunTensorOp(RandomCall("RandomNormal", MakeAttributes(Attr("mean", 3.0f), Attr("scale", 2.0f),
                                                            Attr("seed", 1.0f)))));
  // Five standard errors of 40,000 samples.
  EXPECT_NEAR(MomentsOf(normal).mean, 3, 0.05);
  EXPECT_NEAR(MomentsOf(normal).deviation, 2, 0.05);
  const auto uniform = ElementsOf<float>(
      RunTensorOp(RandomCall("RandomUniform", MakeAttributes(Attr("low", -1.0f), Attr("high", 2.0f),
                                                             Attr("seed", 1.0f)))));
  EXPECT_NEAR(MomentsOf(uniform).mean, 0.5, 0.025);
  EXPECT_NEAR(MomentsOf(uniform).deviation, 3 / std::sqrt(12.0), 0.02);
  for (const float value : uniform) ASSERT_TRUE(value >= -1 && value <= 2);
}

TEST(RandomTest, ASeedGivesTheSameNumbersOnAnyNumberOfThreads) {
  for (const std::string op : {"RandomNormal", "RandomUniform"}) {
    const auto run = [&](int threads, std::vector<Attribute> attributes) {
      return ElementsOf<float>(
          (*RunOp(RandomCall(op, std::move(attributes)), threads))[0].tensor());
    };
    const auto first = run(1, MakeAttributes(Attr("seed", 7.0f)));
    EXPECT_EQ(first, run(4, MakeAttributes(Attr("seed", 7.0f))));
    EXPECT_NE(first, run(1, MakeAttributes(Attr("seed", 8.0f))));
    EXPECT_NE(run(1, {}), run(1, {}));
  }
}

TEST(RandomTest, RunsWithoutASeedDiffer) {
  RandomSource unseeded, seeded;
  unseeded.SetSeed(std::nullopt);
  seeded.SetSeed(0.0f);
  EXPECT_NE(unseeded.ForRun().Uniform(0), unseeded.ForRun().Uniform(0));
  EXPECT_EQ(seeded.ForRun().Uniform(0), seeded.ForRun().Uniform(0));
}

// The known answers of the generator's authors: counter 0, key 0.
TEST(RandomTest, IsPhilox) {
  const uint64_t first = uint64_t{0x6627e8d5} << 32 | 0xe169c58d;
  const uint64_t second = uint64_t{0xbc57ac4c} << 32 | 0x9b00dbd8;
  const auto pair = RandomNumbers(0).UniformPair(0);
  EXPECT_EQ(pair[0], static_cast<double>(first >> 11) * 0x1p-53);
  EXPECT_EQ(pair[1], static_cast<double>(second >> 11) * 0x1p-53);
}

TEST(RandomTest, LikeTakesShapeAndType) {
  const Tensor x = Tensor::Allocate(DataType::kDouble, {2, 3}).value();
  EXPECT_EQ(RunTensorOp({"RandomNormalLike", 0, {x}}).type(), DataType::kDouble);
  const Tensor halves =
      RunTensorOp({"RandomUniformLike",
                   0,
                   {Iota<std::string>({4})},
                   MakeAttributes(Attr("dtype", static_cast<int64_t>(DataType::kFloat16)))});
  EXPECT_EQ(halves.type(), DataType::kFloat16);
  EXPECT_EQ(halves.shape(), Shape({4}));
  EXPECT_EQ(ErrorOf({"RandomNormalLike", 0, {Ints({1})}}),
            "expected a floating-point type for the output, got int64");
  EXPECT_NE(
      ErrorOf({"RandomNormal", 0, {}, MakeAttributes(Attr("shape", std::vector<int64_t>{-1}))}),
      "no error");
}

TEST(RandomTest, BernoulliDrawsWithTheProbability) {
  Tensor p = Tensor::Allocate(DataType::kFloat, {3, kCount}).value();
  for (int64_t i = 0; i < p.size(); ++i) p.data<float>()[i] = 0.5f * static_cast<float>(i / kCount);
  const Tensor y = RunTensorOp(
      {"Bernoulli",
       0,
       {p},
       MakeAttributes(Attr("dtype", static_cast<int64_t>(DataType::kBool)), Attr("seed", 3.0f))});
  const bool* drawn = y.data<bool>();
  EXPECT_EQ(std::count(drawn, drawn + kCount, true), 0);
  EXPECT_NEAR(static_cast<double>(std::count(drawn + kCount, drawn + 2 * kCount, true)),
              kCount / 2.0, 500);
  EXPECT_EQ(std::count(drawn + 2 * kCount, drawn + 3 * kCount, true), kCount);
}

TEST(RandomTest, MultinomialDrawsClasses) {
  const Tensor x = Tensor::Of<float>(
      {2, 3}, {std::log(1.0f), std::log(2.0f), std::log(5.0f), -INFINITY, 10, -INFINITY});
  const Tensor y =
      RunTensorOp({"Multinomial",
                   0,
                   {x},
                   MakeAttributes(Attr("sample_size", kCount), Attr("seed", 2.0f),
                                  Attr("dtype", static_cast<int64_t>(DataType::kInt64)))});
  EXPECT_EQ(y.shape(), Shape({2, kCount}));
  const int64_t* drawn = y.data<int64_t>();
  const double expected[] = {1 / 8.0, 2 / 8.0, 5 / 8.0};
  for (int64_t c = 0; c < 3; ++c) {
    EXPECT_NEAR(static_cast<double>(std::count(drawn, drawn + kCount, c)) / kCount, expected[c],
                0.013);
  }
  EXPECT_EQ(std::count(drawn + kCount, drawn + 2 * kCount, 1), kCount);
  EXPECT_NE(ErrorOf({"Multinomial", 0, {Tensor::Of<float>({1, 1}, {-INFINITY})}}), "no error");
}

}  // namespace
}  // namespace tenon
