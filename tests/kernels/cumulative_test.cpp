#include "kernels/cumulative.h"

#include <vector>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

struct CumulativeSizes {
  size_t outer, n, inner;
};
constexpr CumulativeSizes kCumulativeSizes[] = {{1, 1, 1},    {2, 5, 1},   {3, 16, 1}, {2, 17, 1},
                                                {5, 33, 1},   {1, 100, 1}, {2, 7, 3},  {2, 3, 300},
                                                {3, 40, 257}, {9, 100, 1}, {2, 0, 3},  {1, 2, 9}};

template <class T>
void CheckCumulative(CumulativeOp op, ElementType type) {
  Random random(3);
  for (const CumulativeSizes& s : kCumulativeSizes) {
    std::vector<T> x(s.outer * s.n * s.inner);
    // Numbers whose sums and products are exact.
    for (T& v : x)
      v = static_cast<T>(op == CumulativeOp::kSum ? random.Below(9) : 1 + random.Below(2));
    for (const bool exclusive : {false, true}) {
      for (const bool reverse : {false, true}) {
        const CumulativePlan plan = {op, s.outer, s.n, s.inner, exclusive, reverse};
        std::vector<T> y = x;
        // In two calls, as by two threads.
        Cumulate(plan, type, y.data(), y.data(), 1, plan.tasks());
        Cumulate(plan, type, y.data(), y.data(), 0, 1);
        for (size_t c = 0; c < s.outer * s.inner; ++c) {
          const size_t base = c / s.inner * s.n * s.inner + c % s.inner;
          T expected = op == CumulativeOp::kSum ? 0 : 1;
          for (size_t step = 0; step < s.n; ++step) {
            const size_t at = base + (reverse ? s.n - 1 - step : step) * s.inner;
            const T before = expected;
            expected = static_cast<T>(op == CumulativeOp::kSum ? before + x[at] : before * x[at]);
            ASSERT_EQ(y[at], exclusive ? before : expected) << s.n << " " << s.inner;
          }
        }
      }
    }
  }
}

TEST(CumulativeTest, SumsMatchReference) {
  CheckCumulative<float>(CumulativeOp::kSum, ElementType::kFloat);
  CheckCumulative<double>(CumulativeOp::kSum, ElementType::kDouble);
  CheckCumulative<int8_t>(CumulativeOp::kSum, ElementType::kInt8);
  CheckCumulative<uint16_t>(CumulativeOp::kSum, ElementType::kUint16);
  CheckCumulative<int32_t>(CumulativeOp::kSum, ElementType::kInt32);
  CheckCumulative<int64_t>(CumulativeOp::kSum, ElementType::kInt64);
}

TEST(CumulativeTest, ProductsMatchReference) {
  CheckCumulative<float>(CumulativeOp::kProduct, ElementType::kFloat);
  CheckCumulative<double>(CumulativeOp::kProduct, ElementType::kDouble);
  CheckCumulative<uint32_t>(CumulativeOp::kProduct, ElementType::kUint32);
  CheckCumulative<uint64_t>(CumulativeOp::kProduct, ElementType::kUint64);
}

}  // namespace
}  // namespace tenon::kernels
