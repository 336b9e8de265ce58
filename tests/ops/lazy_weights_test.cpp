#include "ops/framework/lazy_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

namespace tenon {
namespace {

void Copy(const Tensor& constant, float* weights) {
  std::copy_n(constant.data<float>(), constant.size(), weights);
}

TEST(LazyWeightsTest, AreMadeOnceHoweverManyAsk) {
  for (int round = 0; round < 50; ++round) {
    LazyWeights weights;
    EXPECT_FALSE(weights.is_kept());
    weights.Keep(Tensor::Of<float>({2}, {1, 2}), "copy", {});
    std::atomic<int> made = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        EXPECT_TRUE(weights.is_kept());
        const auto got = weights.Get(2, [&](const Tensor& constant, float* into) {
          ++made;
          Copy(constant, into);
        });
        ASSERT_TRUE(got);
        EXPECT_EQ((*got)[1], 2);
        EXPECT_TRUE(weights.is_kept());
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(made, 1);
  }
}

TEST(LazyWeightsTest, AFailureIsTriedAgain) {
  LazyWeights weights;
  weights.Keep(Tensor::Of<float>({1}, {7}), "copy", {});
  EXPECT_FALSE(weights.Get(size_t{1} << 58, Copy)) << "there is not so much memory";
  EXPECT_EQ(*weights.Get(1, Copy).value(), 7);
}

TEST(LazyWeightsTest, KernelsOnTheSameBytesInTheSameFormShareThem) {
  const std::vector<float> memory = {1, 2};
  const Tensor constant =
      Tensor::View(DataType::kFloat, Shape({2}), const_cast<float*>(memory.data()), nullptr);
  const auto shared = std::make_shared<SharedWeights>(SharedWeights::Memory::kFilesAndCallers);
  LazyWeights first, second, other_form, alone;
  first.Keep(constant, "copy", {.shared = shared});
  second.Keep(constant, "copy", {.shared = shared});
  other_form.Keep(constant, "other", {.shared = shared});
  alone.Keep(constant, "copy", {});
  const float* const weights = first.Get(2, Copy).value();
  EXPECT_EQ(second.Get(2, Copy).value(), weights);
  EXPECT_NE(other_form.Get(2, Copy).value(), weights);
  EXPECT_NE(alone.Get(2, Copy).value(), weights);
}

TEST(LazyWeightsTest, AreReadInTheFirstRunsIfAKernelCan) {
  LazyWeights weights;
  weights.Keep(Tensor::Of<float>({1}, {7}), "copy", {.runs_before_packing = 2});
  int made = 0;
  const auto make = [&](const Tensor& constant, float* into) {
    ++made;
    Copy(constant, into);
  };
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(weights.ready(), nullptr);
    const LazyWeights::Source source = weights.GetOrRead(1, make).value();
    EXPECT_EQ(source.weights, nullptr);
    EXPECT_EQ(*source.constant.data<float>(), 7);
  }
  EXPECT_EQ(made, 0);
  for (int run = 2; run < 4; ++run) {
    const LazyWeights::Source source = weights.GetOrRead(1, make).value();
    ASSERT_EQ(source.weights, weights.ready());
    EXPECT_EQ(*source.weights, 7);
    EXPECT_FALSE(source.constant.defined());
  }
  EXPECT_EQ(made, 1);
}

TEST(LazyWeightsTest, AConstantOutlivesItsReleaseWhileItIsRead) {
  LazyWeights weights;
  weights.Keep(Tensor::Of<float>({1}, {7}), "copy", {.runs_before_packing = 1});
  const LazyWeights::Source read = weights.GetOrRead(1, Copy).value();
  ASSERT_NE(weights.GetOrRead(1, Copy).value().weights, nullptr);
  EXPECT_EQ(*read.constant.data<float>(), 7);
}

TEST(LazyWeightsTest, WeightsOfAnotherSessionAreUsedAtOnce) {
  const std::vector<float> memory = {1, 2};
  const Tensor constant =
      Tensor::View(DataType::kFloat, Shape({2}), const_cast<float*>(memory.data()), nullptr);
  const auto shared = std::make_shared<SharedWeights>(SharedWeights::Memory::kFilesAndCallers);
  LazyWeights first, second;
  first.Keep(constant, "copy", {.shared = shared});
  second.Keep(constant, "copy", {.shared = shared});
  EXPECT_EQ(first.GetOrRead(2, Copy).value().weights, nullptr);
  const float* const weights = first.GetOrRead(2, Copy).value().weights;
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(second.GetOrRead(2, Copy).value().weights, weights);
}

}  // namespace
}  // namespace tenon
