#include "kernels/normalization.h"

#include "kernels/lrn.h"
#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using NormalizationTest = TargetTest;

struct Statistics {
  double mean, inv_std;
};
template <class T>
Statistics StatisticsOf(const T* x, size_t n, double epsilon, bool rms = false) {
  double mean = 0, square = 0;
  for (size_t i = 0; i < n && !rms; ++i) mean += x[i] / static_cast<double>(n);
  for (size_t i = 0; i < n; ++i) square += (x[i] - mean) * (x[i] - mean);
  return {mean, 1 / std::sqrt(square / static_cast<double>(n) + epsilon)};
}

constexpr size_t kLengths[] = {1, 2, 7, 8, 15, 16, 17, 63, 64, 65, 768, 5000};
constexpr size_t kRows = 3;
constexpr float kEpsilon = 1e-5f;

// Which of the optional parts a case has.
struct NormCase {
  bool rms, gamma, beta, skip, bias, sum;
};
const NormCase kNormCases[] = {
    {false, true, true, false, false, false},  {false, true, false, false, false, false},
    {false, false, true, false, false, false}, {false, false, false, true, false, true},
    {false, true, true, true, true, true},     {false, true, true, false, true, false},
    {true, true, false, false, false, false},  {true, true, false, true, false, true},
    {true, true, false, true, true, false},    {true, false, false, false, false, true},
};

void CheckNorm(const NormCase& test, size_t n) {
  Random random(n);
  const auto x = random.Floats(kRows * n, -3, 5), skip = random.Floats(kRows * n, -2, 2);
  const auto bias = random.Floats(n, -1, 1), gamma = random.Floats(n, 0.5f, 2);
  const auto beta = random.Floats(n, -1, 1);
  std::vector<float> y(kRows * n + 1, -7), sum(kRows * n, -7), mean(kRows), inv_std(kRows);
  const NormalizationInput input = {x.data(), test.skip ? skip.data() : nullptr,
                                    test.bias ? bias.data() : nullptr,
                                    test.sum ? sum.data() : nullptr};
  const NormalizationParameters parameters = {kEpsilon, test.gamma ? gamma.data() : nullptr,
                                              test.beta ? beta.data() : nullptr, mean.data(),
                                              inv_std.data()};
  (test.rms ? RmsNorm : LayerNorm)(input, y.data(), kRows, n, parameters);
  EXPECT_EQ(y.back(), -7);
  for (size_t row = 0; row < kRows; ++row) {
    std::vector<double> t(n);
    for (size_t i = 0; i < n; ++i) {
      t[i] = static_cast<double>(x[row * n + i]) + (test.skip ? skip[row * n + i] : 0) +
             (test.bias ? bias[i] : 0);
      if (test.sum) {
        ASSERT_TRUE(IsNear(sum[row * n + i], t[i], 0, 2e-6));
      }
    }
    const Statistics s = StatisticsOf(t.data(), n, kEpsilon, test.rms);
    if (!test.rms) {
      EXPECT_TRUE(IsNear(mean[row], s.mean, 1e-6, 1e-6));
    }
    // One element has no variance: epsilon dominates, and the rounding error of the mean is
    // amplified.
    EXPECT_TRUE(IsNear(inv_std[row], s.inv_std, 3e-6, 0));
    for (size_t i = 0; i < n; ++i) {
      const double expected =
          (t[i] - s.mean) * s.inv_std * (test.gamma ? gamma[i] : 1) + (test.beta ? beta[i] : 0);
      ASSERT_TRUE(IsNear(y[row * n + i], expected, 1e-5, n == 1 ? 2e-4 : 5e-6))
          << "row " << row << " element " << i << " of " << n << ": expected " << expected
          << ", got " << y[row * n + i];
    }
  }
}

TEST_F(NormalizationTest, LayerAndRmsNormMatchReference) {
  OnEveryTarget([] {
    for (const NormCase& test : kNormCases) {
      SCOPED_TRACE(&test - kNormCases);
      for (const size_t n : kLengths) CheckNorm(test, n);
    }
  });
}

TEST_F(NormalizationTest, WorksInPlace) {
  OnEveryTarget([] {
    constexpr size_t kN = 37;
    auto x = Random(1).Floats(kRows * kN, -3, 5);
    const auto skip = Random(2).Floats(kRows * kN, -3, 5);
    std::vector<float> y(x.size());
    LayerNorm({x.data(), skip.data()}, y.data(), kRows, kN, {kEpsilon});
    LayerNorm({x.data(), skip.data()}, x.data(), kRows, kN, {kEpsilon});
    EXPECT_EQ(x, y);
  });
}

TEST_F(NormalizationTest, ALargeMeanDoesNotSpoilTheVariance) {
  OnEveryTarget([] {
    auto x = Random(3).Floats(20000, 999, 1001);
    float mean, inv_std;
    RowStatistics(x.data(), 1, x.size(), 0, &mean, &inv_std);
    const Statistics s = StatisticsOf(x.data(), x.size(), 0);
    EXPECT_TRUE(IsNear(mean, s.mean, 1e-6, 0));
    EXPECT_TRUE(IsNear(inv_std, s.inv_std, 1e-5, 0));
  });
}

TEST_F(NormalizationTest, GroupNormMatchesReference) {
  OnEveryTarget([] {
    for (const size_t n : kLengths) {
      constexpr size_t kBatch = 2, kGroups = 3;
      for (const size_t channels_per_group : {1, 2}) {
        const size_t channels = kGroups * channels_per_group, size = channels_per_group * n;
        if (size == 1) continue;
        const auto x = Random(n).Floats(kBatch * channels * n, -3, 5);
        const auto gamma = Random(4).Floats(channels, 0.5f, 2);
        const auto beta = Random(5).Floats(channels, -1, 1);
        std::vector<float> y(x.size());
        GroupNorm(x.data(), y.data(), 0, kBatch * kGroups, {kGroups, channels_per_group, n},
                  gamma.data(), beta.data(), kEpsilon);
        Statistics s{};
        for (size_t i = 0; i < x.size(); ++i) {
          if (i % size == 0) s = StatisticsOf(x.data() + i, size, kEpsilon);
          const size_t c = i / n % channels;
          const double expected = (x[i] - s.mean) * s.inv_std * gamma[c] + beta[c];
          ASSERT_TRUE(IsNear(y[i], expected, 1e-5, 1e-5 * s.inv_std + 5e-6)) << i << " of " << n;
        }
      }
    }
  });
}

TEST_F(NormalizationTest, ScaleAndShiftGoByChannel) {
  OnEveryTarget([] {
    constexpr size_t kChannels = 3;
    const std::vector<float> scale = {2, -1, 0.5f}, shift = {1, 0, -3};
    for (const size_t n : kLengths) {
      const auto x = Random(n).Floats(4 * kChannels * n, -3, 3);
      std::vector<float> y(x.size(), -7);
      ScaleShiftRows(x.data(), y.data(), 2, 4 * kChannels, n, kChannels, scale.data(),
                     shift.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const size_t c = i / n % kChannels;
        const double expected = i / n < 2 ? -7 : static_cast<double>(x[i]) * scale[c] + shift[c];
        ASSERT_TRUE(IsNear(y[i], expected, 1e-6, 1e-6));
      }
      const auto column_scale = Random(1).Floats(n, -2, 2),
                 column_shift = Random(2).Floats(n, -2, 2);
      ScaleShiftColumns(x.data(), y.data(), 4 * kChannels, n, column_scale.data(),
                        column_shift.data());
      for (size_t i = 0; i < x.size(); ++i) {
        const double expected =
            static_cast<double>(x[i]) * column_scale[i % n] + column_shift[i % n];
        ASSERT_TRUE(IsNear(y[i], expected, 1e-6, 1e-6));
      }
    }
  });
}

TEST_F(NormalizationTest, LrnMatchesReference) {
  const LrnParameters cases[] = {{5, 1e-4f, 0.75f, 1},
                                 {1, 0.5f, 0.5f, 2},
                                 {4, 0.9f, 1, 0.1f},
                                 {3, 1, 0.75f, 1},
                                 {20, 1, 0, 1}};
  OnEveryTarget([&] {
    for (const LrnParameters& p : cases) {
      for (const size_t n : {1, 15, 17, 511, 512, 600}) {
        constexpr size_t kBatch = 2, kChannels = 7;
        const auto x = Random(n).Floats(kBatch * kChannels * n, -4, 4);
        std::vector<float> y(x.size() + 1, -7);
        Lrn(x.data(), y.data(), kChannels, n, p, 0, LrnTasks(kBatch, n));
        EXPECT_EQ(y.back(), -7);
        for (size_t i = 0; i < x.size(); ++i) {
          const int64_t c = static_cast<int64_t>(i / n % kChannels);
          const int64_t size = static_cast<int64_t>(p.size);
          double sum = 0;
          for (int64_t k = c - (size - 1) / 2; k <= c + size / 2; ++k) {
            if (k < 0 || k >= static_cast<int64_t>(kChannels)) continue;
            const double v = x[i + (k - c) * n];
            sum += v * v;
          }
          const double expected = x[i] / std::pow(p.bias + p.alpha / p.size * sum, p.beta);
          ASSERT_TRUE(IsNear(y[i], expected, 2e-6, 0)) << i << " of " << n;
        }
      }
    }
  });
}

}  // namespace
}  // namespace tenon::kernels
