#include "kernels/adamw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using AdamWTest = TargetTest;

constexpr AdamWStep kStep = {.alpha = 0.9f,
                             .beta = 0.99f,
                             .epsilon = 1e-6f,
                             .rate = 0.25f,
                             .root = 1.5f,
                             .decay_before = 0.875f,
                             .decay_after = 0.75f};

TEST_F(AdamWTest, IsTheFormula) {
  OnEveryTarget([] {
    for (const size_t n : {0, 1, 3, 4, 7, 8, 15, 16, 17, 100}) {
      Random random(n);
      const std::vector<float> g = random.Floats(n, -2, 2), w = random.Floats(n, -2, 2),
                               m = random.Floats(n, -2, 2), v = random.Floats(n, 0, 2);
      // What follows the last element must stay.
      const auto guarded = [](std::vector<float> values) {
        values.push_back(12345);
        return values;
      };
      std::vector<float> new_w = guarded(w), new_m = guarded(m), new_v = guarded(v);
      UpdateAdamW(kStep, g.data(), new_w.data(), new_m.data(), new_v.data(), n);
      for (size_t i = 0; i < n; ++i) {
        const double alpha = kStep.alpha, beta = kStep.beta, gradient = g[i];
        const double first = alpha * m[i] + (1 - alpha) * gradient;
        const double second = beta * v[i] + (1 - beta) * gradient * gradient;
        const double change = kStep.rate * first / (std::sqrt(second) * 1.5 + kStep.epsilon);
        EXPECT_NEAR(new_m[i], first, 4e-7) << "element " << i << " of " << n;
        EXPECT_NEAR(new_v[i], second, 4e-7);
        EXPECT_NEAR(new_w[i], (0.875 * w[i] - change) * 0.75, 1e-6);
      }
      for (const auto* values : {&new_w, &new_m, &new_v}) EXPECT_EQ(values->back(), 12345);
    }
  });
}

TEST_F(AdamWTest, AnElementsBitsDoNotDependOnItsPlace) {
  OnEveryTarget([] {
    constexpr size_t kN = 37;
    const std::vector<float> g(kN, 0.3f);
    std::vector<float> w(kN, 1.7f), m(kN, 0.1f), v(kN, 0.2f);
    UpdateAdamW(kStep, g.data(), w.data(), m.data(), v.data(), kN);
    for (size_t i = 1; i < kN; ++i) {
      EXPECT_EQ(w[i], w[0]);
      EXPECT_EQ(m[i], m[0]);
      EXPECT_EQ(v[i], v[0]);
    }
  });
}

}  // namespace
}  // namespace tenon::kernels
