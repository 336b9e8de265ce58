// Building blocks of reference implementations: test data, and simple loops over tensors.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "tensor/tensor.h"

namespace tenon {

// Deterministic numbers in [-2, 2) without any pattern.
template <class T = float>
Tensor Scattered(Shape shape, uint32_t seed = 1) {
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), shape).value();
  uint32_t state = seed * 2654435761u + 12345u;
  for (int64_t i = 0; i < x.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    x.data<T>()[i] = static_cast<T>(static_cast<double>(state >> 8) / (1 << 22) - 2);
  }
  return x;
}

inline Tensor Int64s(std::initializer_list<int64_t> values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

// Checks every element against expected(i), i in row-major order.
template <class T = float>
void ExpectElements(const Tensor& y, const Shape& shape, double tolerance,
                    const std::function<double(int64_t)>& expected) {
  ASSERT_EQ(y.type(), DataTypeOf<T>());
  ASSERT_EQ(y.shape(), shape);
  for (int64_t i = 0; i < y.size(); ++i) {
    const double want = expected(i);
    const auto got = static_cast<double>(y.data<T>()[i]);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(got)) << "at " << i;
    } else {
      ASSERT_NEAR(got, want, tolerance * (1 + std::abs(want)))
          << "at " << i << " of " << shape.ToString();
    }
  }
}

}  // namespace tenon
