#include "ops/lazy_weights.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

namespace tenon {
namespace {

TEST(LazyWeightsTest, AreMadeOnceHoweverManyAsk) {
  for (int round = 0; round < 50; ++round) {
    LazyWeights weights;
    EXPECT_FALSE(weights.is_kept());
    weights.Keep(Tensor::Of<float>({2}, {1, 2}));
    std::atomic<int> made = 0;
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        EXPECT_TRUE(weights.is_kept());
        const auto got = weights.Get([&](const Tensor& constant) {
          ++made;
          return constant.Clone();
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
  weights.Keep(Tensor::Of<float>({1}, {7}));
  EXPECT_FALSE(weights.Get([](const Tensor&) -> Result<Tensor> { return Fail("no room"); }));
  EXPECT_EQ(*weights.Get([](const Tensor& constant) { return constant.Clone(); }).value(), 7);
}

}  // namespace
}  // namespace tenon
