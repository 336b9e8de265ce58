#include <algorithm>
#include <cmath>

#include "kernels/conv/conv_weight_gradient.h"
#include "kernels/conv_reference.h"
#include "kernels/elementwise/activation_gradient.h"
#include "kernels/row_gradient.h"
#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using GradientTest = TargetTest;

constexpr size_t kLengths[] = {1, 3, 8, 9, 16, 17, 33, 100, 5000};

double Sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double Derivative(GradientOp op, double x, double alpha) {
  const double s = Sigmoid(alpha * x), pi = std::acos(-1.0);
  const double factor = std::sqrt(2 / pi);
  const double t = std::tanh(factor * (x + 0.044715 * x * x * x));
  switch (op) {
    case GradientOp::kRelu:
      return x > 0;
    case GradientOp::kLeakyRelu:
      return x > 0 ? 1 : alpha;
    case GradientOp::kSigmoid:
      return x * (1 - x);
    case GradientOp::kTanh:
      return 1 - x * x;
    case GradientOp::kGelu:
      return (1 + std::erf(x / std::sqrt(2.0))) / 2 + x * std::exp(-x * x / 2) / std::sqrt(2 * pi);
    case GradientOp::kGeluTanh:
      return (1 + t) / 2 + x / 2 * (1 - t * t) * factor * (1 + 3 * 0.044715 * x * x);
    default:
      return s + alpha * x * s * (1 - s);
  }
}

TEST_F(GradientTest, ActivationsMatchReference) {
  OnEveryTarget([] {
    for (const size_t n : kLengths) {
      for (auto op = GradientOp::kRelu; op <= GradientOp::kQuickGelu;
           op = static_cast<GradientOp>(static_cast<int>(op) + 1)) {
        const float alpha = 1.25f;
        const std::vector<float> dy = Random(n).Floats(n, -2, 2);
        const std::vector<float> x = Random(n + 1).Floats(n, -6, 6);
        std::vector<float> dx(n + 1, -5);
        ActivationGradient(op, dy.data(), x.data(), dx.data(), n, alpha);
        EXPECT_EQ(dx.back(), -5);
        for (size_t i = 0; i < n; ++i) {
          const double expected = dy[i] * Derivative(op, x[i], alpha);
          ASSERT_TRUE(IsNear(dx[i], expected, 2e-6, 4e-6))
              << static_cast<int>(op) << " of " << x[i] << ": " << dx[i] << ", not " << expected;
        }
      }
    }
  });
}

TEST_F(GradientTest, SoftmaxMatchesReference) {
  OnEveryTarget([] {
    for (const size_t n : kLengths) {
      for (const size_t inner : {size_t{1}, size_t{5}, size_t{67}}) {
        for (const bool log : {false, true}) {
          constexpr size_t kOuter = 2;
          const size_t size = kOuter * n * inner;
          const std::vector<float> dy = Random(n).Floats(size, -1, 1);
          const std::vector<float> y = Random(n + 1).Floats(size, log ? -9 : 0, log ? 0 : 1);
          std::vector<float> dx(size + 1, -5);
          SoftmaxGradient(dy.data(), y.data(), dx.data(), n, inner, log, 0,
                          SoftmaxGradientTasks(kOuter, inner));
          EXPECT_EQ(dx.back(), -5);
          for (size_t column = 0; column < kOuter * inner; ++column) {
            const size_t first = column / inner * n * inner + column % inner;
            double sum = 0;
            for (size_t i = first; i < first + n * inner; i += inner) {
              sum += static_cast<double>(dy[i]) * (log ? 1 : y[i]);
            }
            for (size_t i = first; i < first + n * inner; i += inner) {
              const double expected = log ? dy[i] - std::exp(y[i]) * sum : (dy[i] - sum) * y[i];
              ASSERT_TRUE(IsNear(dx[i], expected, 1e-5, 3e-5)) << n << " " << inner << " " << i;
            }
          }
        }
      }
    }
  });
}

TEST_F(GradientTest, NormalizationMatchesReference) {
  OnEveryTarget([] {
    for (const size_t n : kLengths) {
      for (const bool has_mean : {false, true}) {
        constexpr size_t kRows = 3;
        const std::vector<float> dy = Random(n).Floats(kRows * n, -1, 1);
        const std::vector<float> x = Random(n + 1).Floats(kRows * n, -1, 1);
        const std::vector<float> gamma = Random(n + 2).Floats(n, -1, 1);
        const std::vector<float> mean = {0.1f, -0.2f, 0.3f}, inv_std = {1.5f, 0.5f, 2.0f};
        std::vector<float> dx(kRows * n + 1, -5), gamma_sums(n + 1, -5), beta_sums(n + 1, -5);
        NormalizationGradient({n, dy.data(), x.data(), gamma.data(),
                               has_mean ? mean.data() : nullptr, inv_std.data(), dx.data()},
                              0, kRows, gamma_sums.data(), beta_sums.data());
        EXPECT_EQ(dx.back(), -5);
        EXPECT_EQ(gamma_sums.back(), -5);
        EXPECT_EQ(beta_sums.back(), -5);
        std::vector<double> expected_gamma(n), expected_beta(n);
        for (size_t row = 0; row < kRows; ++row) {
          double sum = 0, product = 0;
          const auto normalized = [&](size_t i) {
            const double centred = x[row * n + i] - (has_mean ? static_cast<double>(mean[row]) : 0);
            return centred * static_cast<double>(inv_std[row]);
          };
          for (size_t i = 0; i < n; ++i) {
            const double v = dy[row * n + i], dz = v * static_cast<double>(gamma[i]);
            sum += has_mean ? dz : 0;
            product += dz * normalized(i);
            expected_gamma[i] += v * normalized(i);
            expected_beta[i] += v;
          }
          for (size_t i = 0; i < n; ++i) {
            const double dz = static_cast<double>(dy[row * n + i]) * static_cast<double>(gamma[i]);
            const auto count = static_cast<double>(n);
            const double expected =
                inv_std[row] * (dz - sum / count - normalized(i) * product / count);
            ASSERT_TRUE(IsNear(dx[row * n + i], expected, 1e-5, 1e-5)) << n << " " << i;
          }
        }
        for (size_t i = 0; i < n; ++i) {
          ASSERT_TRUE(IsNear(gamma_sums[i], expected_gamma[i], 1e-5, 1e-5));
          ASSERT_TRUE(IsNear(beta_sums[i], expected_beta[i], 1e-5, 1e-5));
        }
      }
    }
  });
}

TEST_F(GradientTest, ConvolutionsWeightsMatchReference) {
  OnEveryTarget([] {
    ConvGeneralShape shape{.batch = 2, .in_channels = 6, .out_channels = 10, .groups = 2};
    shape.dims[1] = {11, 5, 3, 2, 1, 0};
    shape.dims[2] = {40, 40, 3, 1, 2, 2};
    const size_t in = 11 * 40, out = 5 * 40;
    const std::vector<float> x = Random(1).Floats(2 * 6 * in, -1, 1);
    const std::vector<float> dy = Random(2).Floats(2 * 10 * out, -1, 1);
    std::vector<float> dw(10 * 3 * 9);
    GuardedBuffer scratch(ConvWeightGradientScratchSize(shape) / sizeof(float), true);
    for (size_t task = 0; task < ConvWeightGradientTaskCount(shape); ++task) {
      RunConvWeightGradientTask({shape, x.data(), dy.data(), dw.data()}, task, scratch.data());
    }
    for (size_t i = 0; i < dw.size(); ++i) {
      const size_t m = i / 27, c = m / 5 * 3 + i / 9 % 3;
      double sum = 0;
      for (size_t image = 0; image < 2; ++image) {
        for (size_t p = 0; p < out; ++p) {
          const size_t row = p / 40 * 2 + i / 3 % 3, column = p % 40 + i % 3 * 2 - 2;
          if (column >= 40) continue;
          sum += static_cast<double>(dy[(image * 10 + m) * out + p]) *
                 static_cast<double>(x[(image * 6 + c) * in + row * 40 + column]);
        }
      }
      ASSERT_TRUE(IsNear(dw[i], sum, 1e-5, 1e-5)) << i << ": " << dw[i] << ", not " << sum;
    }
  });
}

}  // namespace
}  // namespace tenon::kernels
