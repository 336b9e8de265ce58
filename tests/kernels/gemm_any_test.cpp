#include "kernels/gemm/gemm_any.h"

#include "kernels/target_test.h"

namespace tenon::kernels {
namespace {

using GemmAnyTest = TargetTest;

struct ProductSizes {
  size_t rows, n, k;
};
// Around the sizes of tiles, and depths that are copied in parts.
constexpr ProductSizes kProductSizes[] = {{1, 1, 1},    {1, 1, 333}, {4, 1, 64}, {3, 7, 5},
                                          {4, 16, 8},   {5, 33, 9},  {17, 4, 4}, {2, 40, 0},
                                          {9, 70, 130}, {8, 64, 65}};

// Whole numbers, whose sums are exact also in double.
template <class T>
std::vector<T> Numbers(size_t n, uint64_t seed) {
  Random random(seed);
  std::vector<T> x(n);
  for (T& v : x) v = static_cast<T>(random.Below(1000)) - static_cast<T>(500);
  return x;
}

// KRN-1: products of doubles and integers, with each operand as it is or transposed.
template <class T>
void CheckProducts() {
  for (const ProductSizes& s : kProductSizes) {
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        const auto a = Numbers<T>(s.rows * s.k, 1), b = Numbers<T>(s.k * s.n, 2);
        const StridedMatrix<T> ma = {a.data(), transpose_a ? 1 : s.k, transpose_a ? s.rows : 1};
        const StridedMatrix<T> mb = {b.data(), transpose_b ? 1 : s.n, transpose_b ? s.k : 1};
        std::vector<T> y(s.rows * s.n + 1, T{77});
        MultiplyRows(ma, mb, s.rows, s.n, s.k, y.data());
        for (size_t i = 0; i < s.rows; ++i) {
          for (size_t j = 0; j < s.n; ++j) {
            T sum = 0;
            for (size_t p = 0; p < s.k; ++p) {
              sum += ma.data[i * ma.row_stride + p * ma.column_stride] *
                     mb.data[p * mb.row_stride + j * mb.column_stride];
            }
            ASSERT_EQ(y[i * s.n + j], sum) << s.rows << " x " << s.n << " x " << s.k << " at " << i
                                           << ", " << j << (transpose_b ? ", B transposed" : "");
          }
        }
        ASSERT_EQ(y.back(), T{77}) << "written past the end";
      }
    }
  }
}

TEST_F(GemmAnyTest, MatchesReference) {
  OnEveryTarget([] {
    CheckProducts<double>();
    CheckProducts<uint32_t>();
    CheckProducts<uint64_t>();
  });
}

}  // namespace
}  // namespace tenon::kernels
