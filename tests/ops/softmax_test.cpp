#include <gtest/gtest.h>

#include <cmath>

#include "ops/reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

// Element i of softmax over the middle of x seen as [outer, n, inner].
template <class T>
double SoftmaxAt(const Tensor& x, int64_t n, int64_t inner, int64_t i, bool log) {
  const int64_t start = i / (n * inner) * n * inner + i % inner;
  double sum = 0;
  for (int64_t k = 0; k < n; ++k) {
    sum += std::exp(static_cast<double>(x.data<T>()[start + k * inner]));
  }
  const auto value = static_cast<double>(x.data<T>()[i]);
  return log ? value - std::log(sum) : std::exp(value) / sum;
}

struct SoftmaxCase {
  Shape shape;
  int64_t axis;
  int opset;
  int64_t n, inner;
};

const SoftmaxCase kCases[] = {
    {{3, 5}, -1, 13, 5, 1},     {{3, 5}, 0, 13, 3, 5},      {{2, 3, 17}, 1, 13, 3, 17},
    {{2, 3, 17}, 2, 13, 17, 1}, {{2, 3, 17}, 1, 11, 51, 1}, {{2, 3, 17}, -1, 11, 17, 1},
    {{1}, 0, 13, 1, 1},         {{0, 4}, 1, 13, 4, 1},      {{4, 1000}, 1, 13, 1000, 1},
};

template <class T>
void CheckSoftmax(const SoftmaxCase& c, bool log) {
  const Tensor x = Scattered<T>(c.shape);
  const Tensor y = RunTensorOp(
      {log ? "LogSoftmax" : "Softmax", c.opset, {x}, MakeAttributes(Attr("axis", c.axis))});
  ExpectElements<T>(y, c.shape, 2e-6,
                    [&](int64_t i) { return SoftmaxAt<T>(x, c.n, c.inner, i, log); });
}

TEST(SoftmaxOpTest, FollowsTheFormulaOverAnyAxis) {
  for (const SoftmaxCase& c : kCases) {
    for (const bool log : {false, true}) {
      CheckSoftmax<float>(c, log);
      CheckSoftmax<double>(c, log);
    }
  }
}

TEST(SoftmaxOpTest, TheDefaultAxisIsTheSchemas) {
  const Tensor x = Scattered({2, 3, 4});
  ExpectElements(RunTensorOp({"Softmax", 13, {x}}), x.shape(), 2e-6,
                 [&](int64_t i) { return SoftmaxAt<float>(x, 4, 1, i, false); });
  ExpectElements(RunTensorOp({"Softmax", 11, {x}}), x.shape(), 2e-6,
                 [&](int64_t i) { return SoftmaxAt<float>(x, 12, 1, i, false); });
}

TEST(SoftmaxOpTest, RefusesAnAxisOutOfRange) {
  for (const int64_t axis : {int64_t{2}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
    EXPECT_FALSE(RunOp({"Softmax", 13, {Scattered({2, 3})}, MakeAttributes(Attr("axis", axis))}));
  }
}

}  // namespace
}  // namespace tenon
