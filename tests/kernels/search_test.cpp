#include "kernels/search.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using SearchTest = TargetTest;

struct Sizes {
  size_t outer, n, inner;
};
constexpr Sizes kSizes[] = {{1, 1, 1},    {2, 5, 1}, {3, 16, 1},  {2, 17, 1},   {5, 33, 1},
                            {1, 1000, 1}, {2, 7, 3}, {2, 3, 300}, {1, 40, 257}, {9, 100, 1}};

// Few distinct values, so that there are ties.
template <class T>
std::vector<T> Inputs(const Sizes& s) {
  Random random(s.n);
  std::vector<T> x(s.outer * s.n * s.inner);
  for (T& v : x) {
    v = static_cast<T>(random.Below(9));
    if (std::is_signed_v<T>) v = static_cast<T>(v - 4);
  }
  return x;
}

template <class T>
void CheckArgExtreme(ElementType type) {
  for (const Sizes& s : kSizes) {
    const auto x = Inputs<T>(s);
    for (const bool min : {false, true}) {
      for (const bool last : {false, true}) {
        std::vector<int64_t> y(s.outer * s.inner);
        ArgExtreme({s.n, s.inner, min, last}, type, x.data(), y.data(), 0, s.outer);
        for (size_t k = 0; k < y.size(); ++k) {
          const T* column = x.data() + k / s.inner * s.n * s.inner + k % s.inner;
          size_t expected = 0;
          for (size_t i = 1; i < s.n; ++i) {
            const T a = column[i * s.inner], b = column[expected * s.inner];
            if ((min ? a < b : a > b) || (last && a == b)) expected = i;
          }
          ASSERT_EQ(y[k], static_cast<int64_t>(expected)) << s.n << " by " << s.inner;
        }
      }
    }
  }
}

TEST_F(SearchTest, ArgExtremeMatchesReference) {
  OnEveryTarget([] { CheckArgExtreme<float>(ElementType::kFloat); });
  CheckArgExtreme<double>(ElementType::kDouble);
  CheckArgExtreme<int32_t>(ElementType::kInt32);
  CheckArgExtreme<int64_t>(ElementType::kInt64);
  CheckArgExtreme<uint8_t>(ElementType::kUint8);
}

TEST_F(SearchTest, NanIsTheExtreme) {
  OnEveryTarget([] {
    for (const size_t inner : {1, 2}) {
      std::vector<float> x(40 * inner, 1.0f);
      x[37 * inner] = x[21 * inner] = kNan;
      int64_t y[2];
      for (const bool min : {false, true}) {
        ArgExtreme({40, inner, min, false}, ElementType::kFloat, x.data(), y, 0, 1);
        EXPECT_EQ(y[0], 21);
        ArgExtreme({40, inner, min, true}, ElementType::kFloat, x.data(), y, 0, 1);
        EXPECT_EQ(y[0], 37);
      }
    }
  });
}

// KRN-1: a long row of doubles is searched in parts.
TEST_F(SearchTest, NanIsTheExtremeOfALongRow) {
  std::vector<double> x(333, 1.0);
  x[330] = x[70] = x[6] = std::numeric_limits<double>::quiet_NaN();
  for (const bool min : {false, true}) {
    for (const bool last : {false, true}) {
      int64_t y = -1;
      ArgExtreme({x.size(), 1, min, last}, ElementType::kDouble, x.data(), &y, 0, 1);
      EXPECT_EQ(y, last ? 330 : 6);
    }
  }
}

template <class T>
void CheckTopK(ElementType type) {
  for (const Sizes& s : kSizes) {
    const auto x = Inputs<T>(s);
    for (const size_t k : {size_t{0}, size_t{1}, s.n / 2, s.n}) {
      for (const bool largest : {true, false}) {
        for (const bool sorted : {true, false}) {
          const size_t columns = s.outer * s.inner;
          std::vector<T> values(columns * k);
          std::vector<int64_t> indices(columns * k);
          const TopKSizes sizes = {s.n, k, s.inner};
          std::vector<__int128> workspace(TopKWorkspaceBytes(sizes) / 16);
          TopK(sizes, {largest, sorted}, type, x.data(), values.data(), indices.data(), 0, s.outer,
               workspace.data());
          for (size_t c = 0; c < columns; ++c) {
            const T* column = x.data() + c / s.inner * s.n * s.inner + c % s.inner;
            std::vector<int64_t> expected(s.n);
            std::iota(expected.begin(), expected.end(), 0);
            std::stable_sort(expected.begin(), expected.end(), [&](int64_t a, int64_t b) {
              return largest ? column[a * s.inner] > column[b * s.inner]
                             : column[a * s.inner] < column[b * s.inner];
            });
            expected.resize(k);
            std::vector<int64_t> got(k);
            for (size_t i = 0; i < k; ++i) {
              const size_t at = c / s.inner * k * s.inner + i * s.inner + c % s.inner;
              got[i] = indices[at];
              ASSERT_EQ(values[at], column[got[i] * s.inner]);
            }
            if (!sorted) std::sort(got.begin(), got.end());
            if (!sorted) std::sort(expected.begin(), expected.end());
            ASSERT_EQ(got, expected) << "k " << k << " of " << s.n << ", largest " << largest;
          }
        }
      }
    }
  }
}

TEST_F(SearchTest, TopKMatchesAStableSort) {
  CheckTopK<float>(ElementType::kFloat);
  CheckTopK<double>(ElementType::kDouble);
  CheckTopK<int8_t>(ElementType::kInt8);
  CheckTopK<int32_t>(ElementType::kInt32);
  CheckTopK<int64_t>(ElementType::kInt64);
  CheckTopK<uint8_t>(ElementType::kUint8);
}

TEST_F(SearchTest, TopKOrdersSpecialFloats) {
  const float inf = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-0.0f, inf, 0.0f, -inf, -kNan, 1};
  std::vector<float> values(6);
  std::vector<int64_t> indices(6);
  const TopKSizes sizes = {6, 6, 1};
  std::vector<__int128> workspace(TopKWorkspaceBytes(sizes) / 16);
  TopK(sizes, {}, ElementType::kFloat, x.data(), values.data(), indices.data(), 0, 1,
       workspace.data());
  EXPECT_EQ(indices, (std::vector<int64_t>{4, 1, 5, 0, 2, 3}));
}

}  // namespace
}  // namespace tenon::kernels
