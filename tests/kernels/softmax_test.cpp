#include "kernels/softmax.h"

#include <algorithm>
#include <limits>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using SoftmaxTest = TargetTest;

// Softmax along the middle axis of [outer, n, inner].
std::vector<double> Reference(const std::vector<double>& x, size_t outer, size_t n, size_t inner,
                              bool log) {
  std::vector<double> y(x.size());
  for (size_t o = 0; o < outer; ++o) {
    for (size_t j = 0; j < inner; ++j) {
      const size_t base = o * n * inner + j;
      double max = -kInf, sum = 0;
      for (size_t i = 0; i < n; ++i) max = std::max(max, x[base + i * inner]);
      for (size_t i = 0; i < n; ++i) sum += std::exp(x[base + i * inner] - max);
      for (size_t i = 0; i < n; ++i) {
        const double t = x[base + i * inner] - max;
        y[base + i * inner] = log ? t - std::log(sum) : std::exp(t) / sum;
      }
    }
  }
  return y;
}

void ExpectClose(const std::vector<float>& got, const std::vector<double>& expected, bool log) {
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_TRUE(IsNear(got[i], expected[i], log ? 1e-6 : 3e-6, log ? 1e-6 : 1e-37))
        << "at " << i << ": expected " << expected[i] << ", got " << got[i];
  }
}

constexpr size_t kLengths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 100, 2049, 5000};

TEST_F(SoftmaxTest, RowsMatchReferenceAtEveryLength) {
  OnEveryTarget([] {
    for (const size_t n : kLengths) {
      for (const bool log : {false, true}) {
        constexpr size_t kRows = 3;
        const std::vector<float> x = Random(n).Floats(kRows * n, -30, 30);
        std::vector<float> y(kRows * n + 1, -5);
        SoftmaxRows(x.data(), y.data(), kRows, n, {.log = log});
        EXPECT_EQ(y.back(), -5);
        ExpectClose(y, Reference({x.begin(), x.end()}, kRows, n, 1, log), log);
        std::vector<float> in_place = x;
        SoftmaxRows(in_place.data(), in_place.data(), kRows, n, {.log = log});
        EXPECT_TRUE(std::equal(in_place.begin(), in_place.end(), y.begin()));
      }
    }
  });
}

TEST_F(SoftmaxTest, ManyShortRowsMatchReference) {
  OnEveryTarget([] {
    for (const size_t n : {1, 2, 3, 8, 9}) {
      for (const bool log : {false, true}) {
        constexpr size_t kRows = 300;
        const std::vector<float> x = Random(n).Floats(kRows * n, -30, 30);
        std::vector<float> y(kRows * n + 1, -5);
        SoftmaxRows(x.data(), y.data(), kRows, n, {.log = log});
        EXPECT_EQ(y.back(), -5);
        ExpectClose(y, Reference({x.begin(), x.end()}, kRows, n, 1, log), log);
        // The bits of a row do not depend on the rows around it.
        std::vector<float> alone(n);
        SoftmaxRows(x.data() + 5 * n, alone.data(), 1, n, {.log = log});
        EXPECT_TRUE(std::equal(alone.begin(), alone.end(), y.begin() + 5 * n));
      }
    }
  });
}

TEST_F(SoftmaxTest, ScalesAndMasks) {
  OnEveryTarget([] {
    for (const size_t n : kLengths) {
      for (const size_t mask_stride : {size_t{0}, n}) {
        constexpr size_t kRows = 2;
        const std::vector<float> x = Random(n).Floats(kRows * n, -9, 9);
        std::vector<float> mask = Random(n + 1).Floats(kRows * n, -3, 3);
        if (n > 2) mask[1] = mask[n + 2] = -kInf;
        std::vector<double> t(x.size());
        for (size_t i = 0; i < t.size(); ++i) {
          t[i] = -0.5 * x[i] + mask[i / n * mask_stride + i % n];
        }
        std::vector<float> y(x.size());
        SoftmaxRows(x.data(), y.data(), kRows, n,
                    {.scale = -0.5f, .mask = mask.data(), .mask_stride = mask_stride});
        ExpectClose(y, Reference(t, kRows, n, 1, false), false);
      }
    }
  });
}

TEST_F(SoftmaxTest, LogarithmsOfSums) {
  OnEveryTarget([] {
    for (const size_t n : kLengths) {
      for (const bool log : {false, true}) {
        constexpr size_t kRows = 3;
        const std::vector<float> x = Random(n).Floats(kRows * n, -30, 30);
        const std::vector<float> mask = Random(n + 1).Floats(n, -3, 3);
        std::vector<float> y(kRows * n), sums(kRows + 1, -5);
        SoftmaxRows(x.data(), y.data(), kRows, n,
                    {.log = log, .scale = 0.5f, .mask = mask.data(), .log_sums = sums.data()});
        EXPECT_EQ(sums.back(), -5);
        for (size_t row = 0; row < kRows; ++row) {
          double sum = 0;
          for (size_t i = 0; i < n; ++i) sum += std::exp(0.5 * x[row * n + i] + mask[i]);
          EXPECT_TRUE(IsNear(sums[row], std::log(sum), 1e-6, 1e-5)) << n;
        }
        // Asking for them changes no bit of the result.
        std::vector<float> alone(kRows * n);
        SoftmaxRows(x.data(), alone.data(), kRows, n,
                    {.log = log, .scale = 0.5f, .mask = mask.data()});
        EXPECT_EQ(y, alone);
      }
    }
  });
}

TEST_F(SoftmaxTest, MiddleAxisMatchesReference) {
  OnEveryTarget([] {
    for (const size_t n : {1, 2, 17}) {
      for (const size_t inner : {1, 2, 15, 16, 17, 255, 256, 257, 300}) {
        for (const bool log : {false, true}) {
          constexpr size_t kOuter = 2;
          const std::vector<float> x = Random(n).Floats(kOuter * n * inner, -30, 30);
          std::vector<float> y(x.size() + 1, -5);
          // In two calls, like two tasks.
          const size_t tasks = SoftmaxMiddleTasks(kOuter, inner);
          SoftmaxMiddle(x.data(), y.data(), n, inner, log, 1, tasks);
          SoftmaxMiddle(x.data(), y.data(), n, inner, log, 0, 1);
          EXPECT_EQ(y.back(), -5);
          ExpectClose(y, Reference({x.begin(), x.end()}, kOuter, n, inner, log), log);
        }
      }
    }
  });
}

TEST_F(SoftmaxTest, NanAndInfinityGiveNan) {
  OnEveryTarget([] {
    for (const float bad : {std::numeric_limits<float>::quiet_NaN(), kInf}) {
      std::vector<float> x(40, 1.0f), y(40);
      x[20] = bad;
      SoftmaxRows(x.data(), y.data(), 1, 40, {});
      EXPECT_TRUE(std::isnan(y[20]));
    }
    const std::vector<float> masked(20, -kInf);
    std::vector<float> y(20);
    SoftmaxRows(masked.data(), y.data(), 1, 20, {});
    for (const float v : y) EXPECT_TRUE(std::isnan(v));
  });
}

// exp overflows unless the maximum is found, wherever it is.
TEST_F(SoftmaxTest, TheMaximumMayBeAnywhere) {
  OnEveryTarget([] {
    constexpr size_t kLength = 101;
    for (size_t at = 0; at < kLength; ++at) {
      std::vector<float> x(kLength, -100.0f), y(kLength);
      x[at] = 100;
      SoftmaxRows(x.data(), y.data(), 1, kLength, {});
      for (size_t i = 0; i < kLength; ++i) ASSERT_EQ(y[i], i == at ? 1.0f : 0.0f) << at;
    }
  });
}

TEST_F(SoftmaxTest, LargeOffsetsDoNotMatter) {
  OnEveryTarget([] {
    const std::vector<float> x = {10000, 10001, 10002};
    std::vector<float> y(3);
    SoftmaxRows(x.data(), y.data(), 1, 3, {.log = true});
    ExpectClose(y, Reference({0, 1, 2}, 1, 3, 1, true), true);
  });
}

}  // namespace
}  // namespace tenon::kernels
