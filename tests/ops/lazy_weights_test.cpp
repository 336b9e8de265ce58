#include "ops/framework/lazy_weights.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/packing_pace.h"
#include "runtime/shared_weights.h"

namespace tenon {
namespace {

void Copy(const Tensor& constant, float* weights) {
  std::copy_n(constant.data<float>(), constant.size(), weights);
}

// In two parts.
void CopyParts(const Tensor& constant, float* weights, size_t first, size_t last) {
  const auto half = static_cast<size_t>(constant.size()) / 2;
  const size_t begin = first == 0 ? 0 : half;
  const size_t end = last == 2 ? static_cast<size_t>(constant.size()) : half;
  std::copy(constant.data<float>() + begin, constant.data<float>() + end, weights + begin);
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
  const auto make = [&](const Tensor& constant, float* into, size_t first, size_t last) {
    ++made;
    CopyParts(constant, into, first, last);
  };
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(weights.ready(), nullptr);
    const LazyWeights::Source source = weights.GetOrRead(1, 2, make).value();
    EXPECT_EQ(source.weights, nullptr);
    EXPECT_EQ(*source.constant.data<float>(), 7);
  }
  EXPECT_EQ(made, 0);
  for (int run = 2; run < 4; ++run) {
    const LazyWeights::Source source = weights.GetOrRead(1, 2, make).value();
    ASSERT_EQ(source.weights, weights.ready());
    EXPECT_EQ(*source.weights, 7);
    EXPECT_FALSE(source.constant.defined());
  }
  EXPECT_EQ(made, 1);
}

TEST(PackingPaceTest, PackingTakesHalfOfTheTimeAndABurstAfterAPause) {
  using std::chrono::milliseconds;
  PackingPace pace;
  const PackingPace::Clock::time_point begin = PackingPace::Clock::now();
  const auto at = [&](int ms) { return begin + milliseconds(ms); };
  EXPECT_TRUE(pace.MayPack(at(0)));
  pace.Packed(at(0), at(20));
  EXPECT_TRUE(pace.MayPack(at(20)));
  pace.Packed(at(20), at(60));  // 10 ms more than the burst
  EXPECT_FALSE(pace.MayPack(at(69)));
  EXPECT_TRUE(pace.MayPack(at(70)));
  pace.Packed(at(70), at(100));
  EXPECT_FALSE(pace.MayPack(at(129)));
  EXPECT_TRUE(pace.MayPack(at(130)));
  pace.Packed(at(5000), at(5050));
  EXPECT_TRUE(pace.MayPack(at(5050)));
  pace.Packed(at(5050), at(5060));
  EXPECT_FALSE(pace.MayPack(at(5069)));
}

TEST(LazyWeightsTest, AreReadWhileOthersHaveTakenTheTimeForPacking) {
  const auto pace = std::make_shared<PackingPace>();
  LazyWeights weights;
  weights.Keep(Tensor::Of<float>({1}, {7}), "copy", {.runs_before_packing = 1, .pace = pace});
  const auto is_read = [&] {
    return weights.GetOrRead(1, 2, CopyParts).value().weights == nullptr;
  };
  EXPECT_TRUE(is_read());
  const PackingPace::Clock::time_point now = PackingPace::Clock::now();
  pace->Packed(now, now + std::chrono::hours(1));
  EXPECT_TRUE(is_read());
  EXPECT_TRUE(is_read());
  EXPECT_EQ(*weights.Get(1, Copy).value(), 7) << "a kernel that cannot read the constant";
  EXPECT_FALSE(is_read());
}

TEST(LazyWeightsTest, OneThatTakesLongIsMadeInParts) {
  constexpr size_t kFloats = 4 << 20;
  const auto pace = std::make_shared<PackingPace>();
  Tensor constant = Tensor::Allocate(DataType::kFloat, Shape({kFloats})).value();
  std::iota(constant.data<float>(), constant.data<float>() + kFloats, 0.0f);
  LazyWeights weights;
  weights.Keep(constant, "copy", {.runs_before_packing = 0, .pace = pace});
  std::vector<std::pair<size_t, size_t>> made;
  const auto slow = [&](const Tensor& from, float* into, size_t first, size_t last) {
    made.emplace_back(first, last);
    std::this_thread::sleep_for(2 * PackingPace::kBurst);
    CopyParts(from, into, first, last);
  };
  const PackingPace::Clock::time_point before = PackingPace::Clock::now();
  ASSERT_EQ(weights.GetOrRead(kFloats, 2, slow).value().weights, nullptr);
  EXPECT_FALSE(pace->MayPack(before + 2 * PackingPace::kBurst)) << "others wait, too";
  while (weights.GetOrRead(kFloats, 2, slow).value().weights == nullptr) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const std::vector<std::pair<size_t, size_t>> parts = {{0, 1}, {1, 2}};
  EXPECT_EQ(made, parts);
  EXPECT_EQ(weights.ready()[0], 0);
  EXPECT_EQ(weights.ready()[kFloats / 2], kFloats / 2);
  EXPECT_EQ(weights.ready()[kFloats - 1], kFloats - 1);
}

TEST(LazyWeightsTest, RunsAtOnceMakeEachPartOnce) {
  constexpr size_t kFloats = 1 << 16, kParts = 2;
  Tensor constant = Tensor::Allocate(DataType::kFloat, Shape({kFloats})).value();
  std::iota(constant.data<float>(), constant.data<float>() + kFloats, 0.0f);
  for (int round = 0; round < 20; ++round) {
    LazyWeights weights;
    weights.Keep(constant, "copy",
                 {.runs_before_packing = 3, .pace = std::make_shared<PackingPace>()});
    std::atomic<size_t> parts = 0, wrong = 0;
    const auto make = [&](const Tensor& from, float* into, size_t first, size_t last) {
      parts += last - first;
      CopyParts(from, into, first, last);
    };
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        for (int run = 0; run < 20; ++run) {
          const LazyWeights::Source source = weights.GetOrRead(kFloats, kParts, make).value();
          const float* const read =
              source.weights ? source.weights : std::as_const(source.constant).data<float>();
          if (read[1] != 1 || read[kFloats - 1] != kFloats - 1) ++wrong;
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(parts, kParts);
    EXPECT_NE(weights.ready(), nullptr);
  }
}

TEST(LazyWeightsTest, AConstantOutlivesItsReleaseWhileItIsRead) {
  LazyWeights weights;
  weights.Keep(Tensor::Of<float>({1}, {7}), "copy", {.runs_before_packing = 1});
  const LazyWeights::Source read = weights.GetOrRead(1, 2, CopyParts).value();
  ASSERT_NE(weights.GetOrRead(1, 2, CopyParts).value().weights, nullptr);
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
  EXPECT_EQ(first.GetOrRead(2, 2, CopyParts).value().weights, nullptr);
  const float* const weights = first.GetOrRead(2, 2, CopyParts).value().weights;
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(second.GetOrRead(2, 2, CopyParts).value().weights, weights);
}

TEST(LazyWeightsTest, KernelsOfASessionMakeThemOnce) {
  const Tensor constant = Tensor::Of<float>({2}, {1, 2});
  const WeightPolicy policy = {.session = std::make_shared<SessionWeights>()};
  LazyWeights first, second, other_form, other_constant;
  first.Keep(constant, "copy", policy);
  second.Keep(constant, "copy", policy);
  other_form.Keep(constant, "other", policy);
  other_constant.Keep(Tensor::Of<float>({2}, {1, 2}), "copy", policy);
  int made = 0;
  const auto make = [&](const Tensor& from, float* into, size_t begin, size_t end) {
    ++made;
    CopyParts(from, into, begin, end);
  };
  // In the first run each kernel reads the constant.
  EXPECT_EQ(first.GetOrRead(2, 2, make).value().weights, nullptr);
  EXPECT_EQ(second.GetOrRead(2, 2, make).value().weights, nullptr);
  EXPECT_EQ(made, 0);
  const float* const weights = first.GetOrRead(2, 2, make).value().weights;
  ASSERT_NE(weights, nullptr);
  EXPECT_EQ(second.ready(), weights);
  EXPECT_EQ(second.GetOrRead(2, 2, make).value().weights, weights);
  EXPECT_EQ(made, 1);
  EXPECT_EQ(other_form.ready(), nullptr);
  EXPECT_EQ(other_constant.ready(), nullptr);
}

TEST(LazyWeightsTest, AConstantAtTheAddressOfOneThatWasReleasedIsAnother) {
  std::vector<float> memory = {1, 2};
  const Tensor constant = Tensor::View(DataType::kFloat, Shape({2}), memory.data(), nullptr);
  const WeightPolicy policy = {.session = std::make_shared<SessionWeights>()};
  LazyWeights first, second;
  first.Keep(constant, "copy", policy);
  EXPECT_EQ(first.Get(2, Copy).value()[1], 2);
  memory[1] = 3;
  second.Keep(constant, "copy", policy);
  EXPECT_EQ(second.Get(2, Copy).value()[1], 3);
  EXPECT_EQ(first.ready()[1], 2);
}

}  // namespace
}  // namespace tenon
