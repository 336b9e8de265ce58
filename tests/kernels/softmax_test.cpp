#include "kernels/softmax.h"

#include <algorithm>
#include <limits>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using SoftmaxTest = TargetTest;

// Calls f(T()) for float and double.
template <class F>
void WithBothTypes(F&& f) {
  f(float());
  f(double());
}

template <class T>
std::vector<T> Values(size_t seed, size_t n, float low, float high) {
  const std::vector<float> values = Random(seed).Floats(n, low, high);
  return {values.begin(), values.end()};
}

// Softmax along the middle axis of [outer, n, inner].
using Exact = std::vector<long double>;
Exact Reference(const Exact& x, size_t outer, size_t n, size_t inner, bool log) {
  Exact y(x.size());
  for (size_t o = 0; o < outer; ++o) {
    for (size_t j = 0; j < inner; ++j) {
      const size_t base = o * n * inner + j;
      long double max = -kInf, sum = 0;
      for (size_t i = 0; i < n; ++i) max = std::max(max, x[base + i * inner]);
      for (size_t i = 0; i < n; ++i) sum += std::exp(x[base + i * inner] - max);
      for (size_t i = 0; i < n; ++i) {
        const long double t = x[base + i * inner] - max;
        y[base + i * inner] = log ? t - std::log(sum) : std::exp(t) / sum;
      }
    }
  }
  return y;
}

template <class T>
void ExpectClose(const std::vector<T>& got, const Exact& expected, bool log) {
  const double unit = sizeof(T) == sizeof(float) ? 1e-6 : 1e-15;
  for (size_t i = 0; i < expected.size(); ++i) {
    const auto exact = static_cast<double>(expected[i]);
    ASSERT_TRUE(IsNear(got[i], exact, log ? unit : 3 * unit, log ? unit : 1e-37))
        << "at " << i << ": expected " << exact << ", got " << got[i];
  }
}

constexpr size_t kLengths[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 100, 2049, 5000};

TEST_F(SoftmaxTest, RowsMatchReferenceAtEveryLength) {
  OnEveryTarget([] {
    WithBothTypes([]<class T>(T) {
      for (const size_t n : kLengths) {
        for (const bool log : {false, true}) {
          constexpr size_t kRows = 3;
          const std::vector<T> x = Values<T>(n, kRows * n, -30, 30);
          std::vector<T> y(kRows * n + 1, -5);
          SoftmaxRows(x.data(), y.data(), kRows, n, log);
          EXPECT_EQ(y.back(), -5);
          ExpectClose(y, Reference({x.begin(), x.end()}, kRows, n, 1, log), log);
          std::vector<T> in_place = x;
          SoftmaxRows(in_place.data(), in_place.data(), kRows, n, log);
          EXPECT_TRUE(std::equal(in_place.begin(), in_place.end(), y.begin()));
        }
      }
    });
  });
}

TEST_F(SoftmaxTest, RowsMayBeEmpty) {
  OnEveryTarget([] {
    WithBothTypes([]<class T>(T) {
      T y = -5;
      for (const bool log : {false, true}) SoftmaxRows(&y, &y, 3, 0, log);
      EXPECT_EQ(y, -5);
    });
  });
}

TEST_F(SoftmaxTest, ManyShortRowsMatchReference) {
  OnEveryTarget([] {
    WithBothTypes([]<class T>(T) {
      for (const size_t n : {1, 2, 3, 8, 9, 28, 32}) {
        for (const bool log : {false, true}) {
          constexpr size_t kRows = 300;
          const std::vector<T> x = Values<T>(n, kRows * n, -30, 30);
          std::vector<T> y(kRows * n + 1, -5);
          SoftmaxRows(x.data(), y.data(), kRows, n, log);
          EXPECT_EQ(y.back(), -5);
          ExpectClose(y, Reference({x.begin(), x.end()}, kRows, n, 1, log), log);
        }
      }
    });
  });
}

TEST_F(SoftmaxTest, TheBitsOfARowDoNotDependOnTheRowsAroundIt) {
  OnEveryTarget([] {
    WithBothTypes([]<class T>(T) {
      for (const size_t n : {1, 2, 3, 8, 9, 10, 16, 17, 28, 31, 32, 33, 40}) {
        for (const bool log : {false, true}) {
          constexpr size_t kRows = 300;
          // So near to each other that the order of a sum changes its rounding.
          const std::vector<T> x = Values<T>(n, kRows * n, -1, 1);
          std::vector<T> y(kRows * n), some(kRows * n);
          SoftmaxRows(x.data(), y.data(), kRows, n, log);
          for (const size_t rows : {1, 2, 3, 5, 150}) {
            for (size_t row = 0; row < kRows; row += rows) {
              SoftmaxRows(x.data() + row * n, some.data() + row * n, rows, n, log);
            }
            EXPECT_EQ(some, y) << rows << " rows of " << n;
          }
        }
      }
    });
  });
}

// A row of 2 n elements in two parts, each with its mask or none.
TEST_F(SoftmaxTest, PartsMatchReference) {
  OnEveryTarget([] {
    for (const size_t n : kLengths) {
      for (const bool masked : {false, true}) {
        for (const float step : {-40.0f, 0.0f, 40.0f}) {  // from the first part to the second
          std::vector<float> x = Random(n).Floats(2 * n, -9, 9);
          std::vector<float> mask = Random(n + 1).Floats(2 * n, -3, 3);
          if (n > 2) mask[1] = mask[n + 2] = -kInf;
          const float scale = masked ? -0.5f : 1.0f;
          Exact t(x.size());
          for (size_t i = 0; i < t.size(); ++i) {
            if (i >= n) x[i] += step;
            t[i] = scale * x[i] + (masked ? mask[i] : 0);
          }
          x.push_back(-5);
          SoftmaxState state;
          EXPECT_TRUE(state.is_new());
          EXPECT_EQ(SoftmaxPart(x.data(), n, scale, masked ? mask.data() : nullptr, &state), 0);
          EXPECT_FALSE(state.is_new());
          const float factor =
              SoftmaxPart(x.data() + n, n, scale, masked ? mask.data() + n : nullptr, &state);
          EXPECT_EQ(x.back(), -5);
          x.pop_back();
          double sum = 0;
          for (const long double value : t) sum += std::exp(static_cast<double>(value));
          EXPECT_TRUE(IsNear(state.max + std::log(state.sum), std::log(sum), 1e-6, 1e-5)) << n;
          ScaleRow(x.data(), n, factor);
          ScaleRow(x.data(), 2 * n, 1 / state.sum);
          // exp multiplies the rounding error of the difference of two large numbers.
          const Exact expected = Reference(t, 1, 2 * n, 1, false);
          for (size_t i = 0; i < expected.size(); ++i) {
            ASSERT_TRUE(IsNear(x[i], static_cast<double>(expected[i]), 2e-5, 1e-37))
                << n << " " << step << " at " << i;
          }
        }
      }
    }
  });
}

TEST_F(SoftmaxTest, PartsOfMinusInfinityAreZeros) {
  OnEveryTarget([] {
    std::vector<float> x(19, -kInf);
    SoftmaxState state;
    SoftmaxPart(x.data(), x.size(), 1, nullptr, &state);
    EXPECT_EQ(x, std::vector<float>(19, 0.0f));
    EXPECT_TRUE(state.is_new());
    std::vector<float> more = {1, -kInf};
    EXPECT_EQ(SoftmaxPart(more.data(), 2, 1, nullptr, &state), 0);
    EXPECT_EQ(more, (std::vector<float>{1, 0}));
    // A further part without any leaves what there is.
    x.assign(19, -kInf);
    EXPECT_EQ(SoftmaxPart(x.data(), x.size(), 1, nullptr, &state), 1);
    EXPECT_EQ(x, std::vector<float>(19, 0.0f));
    EXPECT_EQ(state.sum, 1);
    x[3] = std::numeric_limits<float>::quiet_NaN();
    SoftmaxPart(x.data(), x.size(), 1, nullptr, &state);
    EXPECT_TRUE(std::isnan(state.sum));
  });
}

TEST_F(SoftmaxTest, MiddleAxisMatchesReference) {
  OnEveryTarget([] {
    WithBothTypes([]<class T>(T) {
      for (const size_t n : {1, 2, 17}) {
        for (const size_t inner : {1, 2, 15, 16, 17, 255, 256, 257, 300}) {
          for (const bool log : {false, true}) {
            constexpr size_t kOuter = 2;
            const std::vector<T> x = Values<T>(n, kOuter * n * inner, -30, 30);
            std::vector<T> y(x.size() + 1, -5);
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
  });
}

TEST_F(SoftmaxTest, NanAndInfinityGiveNan) {
  OnEveryTarget([] {
    WithBothTypes([]<class T>(T) {
      for (const T bad : {std::numeric_limits<T>::quiet_NaN(), T{kInf}}) {
        std::vector<T> x(40, T{1}), y(40);
        x[20] = bad;
        SoftmaxRows(x.data(), y.data(), 1, 40, false);
        EXPECT_TRUE(std::isnan(y[20]));
      }
      const std::vector<T> masked(20, T{-kInf});
      std::vector<T> y(20);
      SoftmaxRows(masked.data(), y.data(), 1, 20, false);
      for (const T v : y) EXPECT_TRUE(std::isnan(v));
    });
  });
}

// exp overflows unless the maximum is found, wherever it is.
TEST_F(SoftmaxTest, TheMaximumMayBeAnywhere) {
  OnEveryTarget([] {
    WithBothTypes([]<class T>(T) {
      constexpr size_t kLength = 101;
      for (size_t at = 0; at < kLength; ++at) {
        std::vector<T> x(kLength, T{-100}), y(kLength);
        x[at] = 100;
        SoftmaxRows(x.data(), y.data(), 1, kLength, false);
        for (size_t i = 0; i < kLength; ++i) ASSERT_NEAR(y[i], i == at ? 1 : 0, 1e-80) << at;
      }
    });
  });
}

TEST_F(SoftmaxTest, LargeOffsetsDoNotMatter) {
  OnEveryTarget([] {
    WithBothTypes([]<class T>(T) {
      const std::vector<T> x = {10000, 10001, 10002};
      std::vector<T> y(3);
      SoftmaxRows(x.data(), y.data(), 1, 3, true);
      ExpectClose(y, Reference({0, 1, 2}, 1, 3, 1, true), true);
    });
  });
}

}  // namespace
}  // namespace tenon::kernels
