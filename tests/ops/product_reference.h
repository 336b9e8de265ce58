// Reference matrix products: simple loops in double that share no code with the product.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "tensor/tensor.h"

namespace tenon {

// Elements between -1 and 1 (integers: -7 to 7, or 0 to 14), the same on every platform.
template <class T>
Tensor FilledWith(Shape shape, uint64_t seed) {
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), shape).value();
  uint64_t state = seed * 0x9e3779b97f4a7c15u + 1;
  for (int64_t i = 0; i < x.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    const auto number = static_cast<int64_t>(state >> 40) % 15;
    if constexpr (std::is_floating_point_v<T>) {
      x.data<T>()[i] = static_cast<T>(number - 7) / T{8};
    } else {
      x.data<T>()[i] = static_cast<T>(std::is_signed_v<T> ? number - 7 : number);
    }
  }
  return x;
}

// A matrix product by index: a(batch, i, p), b(batch, p, j), in whatever layout.
struct ReferenceProduct {
  int64_t batches, m, n, k;
  std::function<double(int64_t, int64_t, int64_t)> a, b;

  // [batches, m, n], dense; `finish` maps sum, batch, i, j to the element.
  std::vector<double> Compute(
      const std::function<double(double, int64_t, int64_t, int64_t)>& finish) const {
    std::vector<double> y;
    for (int64_t batch = 0; batch < batches; ++batch) {
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t p = 0; p < k; ++p) sum += a(batch, i, p) * b(batch, p, j);
          y.push_back(finish(sum, batch, i, j));
        }
      }
    }
    return y;
  }
};

template <class T>
void ExpectNear(const Tensor& y, const std::vector<double>& expected, double tolerance) {
  ASSERT_EQ(y.size(), static_cast<int64_t>(expected.size()));
  for (size_t i = 0; i < expected.size(); ++i) {
    ASSERT_NEAR(static_cast<double>(y.data<T>()[i]), expected[i],
                tolerance * (1 + std::abs(expected[i])))
        << "element " << i << " of " << y.shape().ToString();
  }
}

}  // namespace tenon
