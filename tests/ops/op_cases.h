// Tensors for operator tests.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ops/run_op.h"

namespace tenon {

// 0, 1, 2, ... as elements of T.
template <class T>
Tensor Iota(const Shape& shape) {
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), shape).value();
  for (int64_t i = 0; i < x.size(); ++i) {
    if constexpr (std::is_same_v<T, std::string>) {
      x.data<T>()[i] = std::to_string(i);
    } else {
      x.data<T>()[i] = static_cast<T>(i);
    }
  }
  return x;
}

inline Tensor Ints(std::initializer_list<int64_t> values) {
  return Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

template <class T>
std::vector<T> ElementsOf(const Tensor& x) {
  EXPECT_EQ(x.type(), DataTypeOf<T>());
  return x.type() == DataTypeOf<T>() ? std::vector<T>(x.values<T>().begin(), x.values<T>().end())
                                     : std::vector<T>();
}

// The failure of a call; "no error" if there is none.
inline std::string ErrorOf(OpCall call) {
  const auto outputs = RunOp(std::move(call));
  return outputs ? "no error" : outputs.error().message();
}

// The coordinates of element `i` of a tensor of this shape.
inline std::vector<int64_t> CoordinatesOf(int64_t i, const Shape& shape) {
  std::vector<int64_t> coordinates(shape.rank());
  for (size_t axis = shape.rank(); axis-- > 0;) {
    coordinates[axis] = i % shape[axis];
    i /= shape[axis];
  }
  return coordinates;
}

// The position of the element at these coordinates.
inline int64_t PositionOf(const std::vector<int64_t>& coordinates, const Shape& shape) {
  int64_t i = 0;
  for (size_t axis = 0; axis < shape.rank(); ++axis) i = i * shape[axis] + coordinates[axis];
  return i;
}

// Checks that element i of `y` is element source(coordinates of i) of `x`.
template <class T, class Source>
void ExpectElements(const Tensor& y, const Tensor& x, Source&& source) {
  ASSERT_EQ(y.type(), x.type());
  for (int64_t i = 0; i < y.size(); ++i) {
    const std::vector<int64_t> from = source(CoordinatesOf(i, y.shape()));
    ASSERT_EQ(y.data<T>()[i], x.data<T>()[PositionOf(from, x.shape())]) << "element " << i;
  }
}

// Calls test(T()) for an element type of every size.
template <class Test>
void ForEachElementSize(Test&& test) {
  test(uint8_t());
  test(int16_t());
  test(float());
  test(int64_t());
  test(std::string());
}

}  // namespace tenon
