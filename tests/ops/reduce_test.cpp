#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

struct ReduceCase {
  const char* name;
  double (*reference)(const std::vector<double>&);
};

double Sum(const std::vector<double>& v, double (*f)(double)) {
  double sum = 0;
  for (const double x : v) sum += f(x);
  return sum;
}
double Same(double x) { return x; }

const ReduceCase kCases[] = {
    {"ReduceSum", [](const std::vector<double>& v) { return Sum(v, Same); }},
    {"ReduceMean", [](const std::vector<double>& v) { return Sum(v, Same) / double(v.size()); }},
    {"ReduceMax",
     [](const std::vector<double>& v) { return *std::max_element(v.begin(), v.end()); }},
    {"ReduceMin",
     [](const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }},
    {"ReduceProd",
     [](const std::vector<double>& v) {
       double product = 1;
       for (const double x : v) product *= x;
       return product;
     }},
    {"ReduceSumSquare",
     [](const std::vector<double>& v) { return Sum(v, [](double x) { return x * x; }); }},
    {"ReduceL1", [](const std::vector<double>& v) { return Sum(v, std::abs); }},
    {"ReduceL2",
     [](const std::vector<double>& v) {
       return std::sqrt(Sum(v, [](double x) { return x * x; }));
     }},
    {"ReduceLogSum", [](const std::vector<double>& v) { return std::log(Sum(v, Same)); }},
    {"ReduceLogSumExp",
     [](const std::vector<double>& v) {
       return std::log(Sum(v, [](double x) { return std::exp(x); }));
     }},
};

const Shape kShape = {2, 3, 4, 5};
const std::vector<std::vector<int64_t>> kAxes = {{3}, {0}, {1}, {-1, -2}, {0, 2}, {0, 1, 2, 3}};

bool Contains(const std::vector<int64_t>& axes, int64_t axis) {
  return std::any_of(axes.begin(), axes.end(),
                     [axis](int64_t a) { return a == axis || a + 4 == axis; });
}

// The elements of each output, in row-major order of the kept axes.
std::vector<std::vector<double>> Groups(const Tensor& x, const std::vector<int64_t>& axes) {
  std::vector<std::vector<double>> groups;
  for (int64_t i = 0; i < x.size(); ++i) {
    size_t group = 0;
    int64_t rest = i, stride = x.size();
    for (int64_t axis = 0; axis < 4; ++axis) {
      stride /= kShape[size_t(axis)];
      const int64_t index = rest / stride;
      rest %= stride;
      if (!Contains(axes, axis)) group = group * size_t(kShape[size_t(axis)]) + size_t(index);
    }
    groups.resize(std::max(groups.size(), group + 1));
    groups[group].push_back(double(x.data<float>()[i]));
  }
  return groups;
}

Shape ReducedShape(const std::vector<int64_t>& axes, bool keepdims) {
  Shape shape;
  for (int64_t axis = 0; axis < 4; ++axis) {
    if (!Contains(axes, axis)) {
      shape.Append(kShape[size_t(axis)]);
    } else if (keepdims) {
      shape.Append(1);
    }
  }
  return shape;
}

TEST(ReduceOpTest, ReducesAnySetOfAxesInBothForms) {
  Tensor x = Scattered(kShape);
  // Near 1, so that sums have a logarithm and products stay in range.
  for (int64_t i = 0; i < x.size(); ++i) x.data<float>()[i] = 1 + x.data<float>()[i] / 10;
  for (const ReduceCase& c : kCases) {
    for (const auto& axes : kAxes) {
      for (const bool keepdims : {false, true}) {
        const auto groups = Groups(x, axes);
        const auto check = [&](const Tensor& y) {
          ExpectElements(y, ReducedShape(axes, keepdims), 1e-5,
                         [&](int64_t i) { return c.reference(groups[size_t(i)]); });
        };
        const Tensor axes_tensor =
            Tensor::Of<int64_t>({int64_t(axes.size())}, std::span<const int64_t>(axes));
        check(RunTensorOp(
            {c.name, 18, {x, axes_tensor}, MakeAttributes(Attr("keepdims", int64_t{keepdims}))}));
        check(
            RunTensorOp({c.name,
                         11,
                         {x},
                         MakeAttributes(Attr("keepdims", int64_t{keepdims}), Attr("axes", axes))}));
      }
    }
  }
}

TEST(ReduceOpTest, NoAxesMeanAllOrNone) {
  const Tensor x = Tensor::Of<float>({2, 2}, {1, 2, 3, 4});
  EXPECT_EQ(*RunTensorOp({"ReduceSum", 13, {x}}).data<float>(), 10);
  const Tensor same =
      RunTensorOp({"ReduceSum", 13, {x}, MakeAttributes(Attr("noop_with_empty_axes", int64_t{1}))});
  EXPECT_EQ(same.shape(), x.shape());
  EXPECT_EQ(same.data<float>()[3], 4);
}

TEST(ReduceOpTest, MeansOf64BitsDoNotOverflow) {
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  constexpr uint64_t kMostUnsigned = std::numeric_limits<uint64_t>::max();
  for (const int64_t axis : {0, 1}) {
    const Shape shape = axis == 0 ? Shape({3, 1}) : Shape({1, 3});
    const auto mean = [&](Tensor x) {
      return RunTensorOp({"ReduceMean", 18, {std::move(x), Int64s({axis})}});
    };
    const auto of = [&](std::vector<int64_t> x) {
      return *mean(Tensor::Of<int64_t>(shape, x)).data<int64_t>();
    };
    EXPECT_EQ(of({kMost, kMost, kMost - 3}), kMost - 1);
    EXPECT_EQ(of({-kMost, -kMost, -kMost + 3}), -kMost + 1);
    EXPECT_EQ(of({-1, -1, 0}), 0);  // truncated
    EXPECT_EQ(
        *mean(Tensor::Of<uint64_t>(shape, {kMostUnsigned, kMostUnsigned, 0})).data<uint64_t>(),
        kMostUnsigned / 3 * 2);
  }
}

TEST(ReduceOpTest, EmptySetsFollowTheStandard) {
  const Tensor x = Tensor::Allocate(DataType::kFloat, {2, 0}).value();
  const auto value = [&](const char* op) {
    return RunTensorOp({op, 18, {x, Int64s({1})}}).data<float>()[1];
  };
  EXPECT_EQ(value("ReduceSum"), 0);
  EXPECT_EQ(value("ReduceProd"), 1);
  EXPECT_EQ(value("ReduceMax"), -std::numeric_limits<float>::infinity());
  EXPECT_EQ(value("ReduceMin"), std::numeric_limits<float>::infinity());
}

TEST(ReduceOpTest, RefusesHostileAxes) {
  const Tensor x = Scattered({2, 3});
  for (const int64_t axis : {int64_t{2}, int64_t{-3}, INT64_MIN, INT64_MAX}) {
    EXPECT_FALSE(RunOp({"ReduceSum", 13, {x, Int64s({axis})}}));
  }
  EXPECT_EQ(RunOp({"ReduceSum", 13, {x, Int64s({1, -1})}}).error().message(),
            "axis -1 is given twice");
}

}  // namespace
}  // namespace tenon
