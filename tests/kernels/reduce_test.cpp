#include "kernels/reduce.h"

#include <algorithm>
#include <limits>
#include <memory>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using ReduceTest = TargetTest;
using Sizes = std::vector<size_t>;

constexpr double kInf = std::numeric_limits<double>::infinity();

double Reference(ReduceOp op, const std::vector<double>& x) {
  double sum = 0, product = 1, squares = 0, absolutes = 0, max = -kInf, min = kInf, exps = 0;
  for (const double v : x) {
    sum += v;
    product *= v;
    squares += v * v;
    absolutes += std::abs(v);
    max = std::isnan(v) ? v : std::max(v, max);
    min = std::isnan(v) ? v : std::min(v, min);
    exps += std::exp(v);
  }
  switch (op) {
    case ReduceOp::kSum:
      return sum;
    case ReduceOp::kMean:
      return sum / static_cast<double>(x.size());
    case ReduceOp::kMax:
      return max;
    case ReduceOp::kMin:
      return min;
    case ReduceOp::kProd:
      return product;
    case ReduceOp::kSumSquare:
      return squares;
    case ReduceOp::kL1:
      return absolutes;
    case ReduceOp::kL2:
      return std::sqrt(squares);
    case ReduceOp::kLogSum:
      return std::log(sum);
    case ReduceOp::kLogSumExp:
      return std::log(exps);
  }
  return 0;
}

constexpr ReduceOp kOps[] = {
    ReduceOp::kSum,       ReduceOp::kMean, ReduceOp::kMax, ReduceOp::kMin,    ReduceOp::kProd,
    ReduceOp::kSumSquare, ReduceOp::kL1,   ReduceOp::kL2,  ReduceOp::kLogSum, ReduceOp::kLogSumExp};

const Sizes kShapes[] = {{},           {1},       {5},      {17, 33}, {3, 1, 5},       {2, 3, 4},
                         {2, 3, 4, 5}, {40, 600}, {600, 3}, {0, 3},   {2, 3, 2, 3, 2}, {9, 515},
                         {300, 2, 17}, {5000}};

// The elements of every output, in row-major order of the kept axes.
std::vector<std::vector<double>> Groups(const Sizes& shape, uint32_t mask,
                                        const std::vector<double>& x) {
  size_t outputs = 1;
  for (size_t i = 0; i < shape.size(); ++i) outputs *= mask >> i & 1 ? 1 : shape[i];
  std::vector<std::vector<double>> groups(outputs);
  for (size_t k = 0; k < x.size(); ++k) {
    size_t rest = k, output = 0, stride = 1;
    for (size_t i = shape.size(); i-- > 0;) {
      const size_t index = rest % shape[i];
      rest /= shape[i];
      if (mask >> i & 1) continue;
      output += index * stride;
      stride *= shape[i];
    }
    groups[output].push_back(x[k]);
  }
  return groups;
}

template <class T>
std::vector<T> Inputs(size_t n) {
  Random random(n);
  std::vector<T> x(n);
  for (T& v : x) {
    if constexpr (std::is_floating_point_v<T>) {
      v = random.Uniform(0.25f, 1.75f);
    } else {
      v = static_cast<T>(1 + random.Below(2));
    }
  }
  return x;
}

template <class T>
bool Agrees(ReduceOp op, T got, double expected) {
  if constexpr (std::is_floating_point_v<T>) return IsNear(got, expected, 2e-6, 1e-6);
  // Products and sums wrap; the reference does not.
  if (op == ReduceOp::kMean) return got == static_cast<T>(static_cast<int64_t>(expected));
  if (std::abs(expected) > 1e15) return true;
  return got == static_cast<T>(static_cast<int64_t>(expected));
}

template <class T>
void CheckType(ElementType type) {
  for (const Sizes& shape : kShapes) {
    for (uint32_t mask = 0; mask < 1u << shape.size(); ++mask) {
      const auto reduced = std::make_unique<bool[]>(shape.size() + 1);
      size_t n = 1;
      for (size_t i = 0; i < shape.size(); ++i) {
        reduced[i] = mask >> i & 1;
        n *= shape[i];
      }
      const std::vector<T> x = Inputs<T>(n);
      const auto groups = Groups(shape, mask, {x.begin(), x.end()});
      const auto plan = MakeReducePlan(shape, {reduced.get(), shape.size()});
      ASSERT_TRUE(plan.has_value());
      ASSERT_EQ(plan->outputs, groups.size());
      for (const ReduceOp op : kOps) {
        // There is nothing to compare: the reference overflows, the type wraps.
        if (groups.empty() || (groups[0].empty() && !std::is_floating_point_v<T>)) continue;
        std::vector<T> y(groups.size());
        const size_t middle = plan->units / 2;
        RunReduce(*plan, op, type, x.data(), y.data(), middle, plan->units);
        RunReduce(*plan, op, type, x.data(), y.data(), 0, middle);
        for (size_t i = 0; i < y.size(); ++i) {
          const double expected = Reference(op, groups[i]);
          ASSERT_TRUE(Agrees(op, y[i], expected))
              << "op " << static_cast<int>(op) << ", mask " << mask << " of rank " << shape.size()
              << ", output " << i << ": expected " << expected << ", got " << +y[i];
        }
      }
    }
  }
}

TEST_F(ReduceTest, MatchesReferenceForEveryOperatorTypeAndSetOfAxes) {
  OnEveryTarget([] { CheckType<float>(ElementType::kFloat); });
  CheckType<double>(ElementType::kDouble);
  CheckType<int32_t>(ElementType::kInt32);
  CheckType<int64_t>(ElementType::kInt64);
  CheckType<uint8_t>(ElementType::kUint8);
}

std::vector<float> Reduce(ReduceOp op, const std::vector<float>& x, const Sizes& shape,
                          std::array<bool, 2> reduced) {
  const auto plan = MakeReducePlan(shape, reduced);
  std::vector<float> y(plan->outputs);
  RunReduce(*plan, op, ElementType::kFloat, x.data(), y.data(), 0, plan->units);
  return y;
}

TEST_F(ReduceTest, MaxAndMinPropagateNan) {
  OnEveryTarget([] {
    for (const size_t bad : {0, 5, 16, 39}) {
      std::vector<float> x(40, 1.0f);
      x[bad] = std::numeric_limits<float>::quiet_NaN();
      for (const ReduceOp op : {ReduceOp::kMax, ReduceOp::kMin}) {
        EXPECT_TRUE(std::isnan(Reduce(op, x, {1, 40}, {false, true})[0]));
        EXPECT_TRUE(std::isnan(Reduce(op, x, {40, 1}, {true, false})[0]));
        EXPECT_TRUE(std::isnan(Reduce(op, x, {5, 8}, {true, false})[bad % 8]));
      }
    }
  });
}

TEST_F(ReduceTest, LogSumExpHandlesLargeAndInfiniteValues) {
  static constexpr float kInfinity = std::numeric_limits<float>::infinity();
  OnEveryTarget([] {
    for (const std::array<bool, 2> reduced : {std::array{true, false}, std::array{false, true}}) {
      const Sizes shape = reduced[0] ? Sizes{3, 1} : Sizes{1, 3};
      EXPECT_FLOAT_EQ(Reduce(ReduceOp::kLogSumExp, {1000, 1000, 1000}, shape, reduced)[0],
                      1000 + std::log(3.0f));
      EXPECT_EQ(
          Reduce(ReduceOp::kLogSumExp, {-kInfinity, -kInfinity, -kInfinity}, shape, reduced)[0],
          -kInfinity);
      EXPECT_EQ(Reduce(ReduceOp::kLogSumExp, {1, kInfinity, 2}, shape, reduced)[0], kInfinity);
    }
  });
}

TEST_F(ReduceTest, LongSumsStayAccurate) {
  OnEveryTarget([] {
    const auto x = Random(1).Floats(1 << 20, 0, 1);
    double expected = 0;
    for (const float v : x) expected += v;
    EXPECT_TRUE(
        IsNear(Reduce(ReduceOp::kSum, x, {1, 1 << 20}, {false, true})[0], expected, 1e-6, 0));
    double column = 0;
    for (size_t i = 0; i < x.size(); i += 2) column += x[i];
    EXPECT_TRUE(IsNear(Reduce(ReduceOp::kSum, x, {1 << 19, 2}, {true, false})[0], column, 1e-6, 0));
  });
}

TEST_F(ReduceTest, EmptyReductionsGiveTheNeutralElement) {
  const auto plan = MakeReducePlan(Sizes{0, 3}, std::array{true, false});
  ASSERT_EQ(plan->outputs, 3u);
  OnEveryTarget([&] {
    float y[3];
    RunReduce(*plan, ReduceOp::kProd, ElementType::kFloat, nullptr, y, 0, plan->units);
    EXPECT_EQ(y[2], 1);
    RunReduce(*plan, ReduceOp::kMin, ElementType::kFloat, nullptr, y, 0, plan->units);
    EXPECT_EQ(y[0], kInf);
  });
  int32_t y[3];
  RunReduce(*plan, ReduceOp::kMax, ElementType::kInt32, nullptr, y, 0, plan->units);
  EXPECT_EQ(y[1], std::numeric_limits<int32_t>::min());
}

}  // namespace
}  // namespace tenon::kernels
