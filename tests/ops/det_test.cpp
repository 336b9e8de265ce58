#include <numeric>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

// By expansion along the first row.
double Determinant(const std::vector<double>& a, size_t n) {
  if (n == 0) return 1;
  double sum = 0;
  for (size_t column = 0; column < n; ++column) {
    std::vector<double> minor;
    for (size_t i = 1; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) {
        if (j != column) minor.push_back(a[i * n + j]);
      }
    }
    sum += (column % 2 ? -1 : 1) * a[column] * Determinant(minor, n - 1);
  }
  return sum;
}

template <class T>
void CheckDet(const Shape& shape) {
  const Tensor x = Scattered<T>(shape);
  const int64_t n = shape.back();
  Shape batch;
  for (size_t i = 0; i + 2 < shape.rank(); ++i) batch.Append(shape[i]);
  ExpectElements<T>(RunTensorOp({"Det", 22, {x}}), batch, 1e-5, [&](int64_t i) {
    const T* first = x.data<T>() + i * n * n;
    return Determinant(std::vector<double>(first, first + n * n), static_cast<size_t>(n));
  });
}

TEST(DetTest, FollowsTheExpansion) {
  for (const Shape& shape : {Shape{1, 1}, Shape{2, 2}, Shape{3, 3}, Shape{5, 5}, Shape{2, 3, 4, 4},
                             Shape{0, 3, 3}, Shape{2, 0, 0}}) {
    CheckDet<float>(shape);
    CheckDet<double>(shape);
  }
}

TEST(DetTest, SingularMatricesGiveZero) {
  const Tensor x = Tensor::Of<float>({2, 2}, {0, 0, 0, 5});
  EXPECT_EQ(*RunTensorOp({"Det", 11, {x}}).data<float>(), 0);
}

TEST(DetTest, RefusesWhatIsNotSquare) {
  EXPECT_NE(ErrorOf({"Det", 11, {Scattered({2, 3})}}), "no error");
  EXPECT_NE(ErrorOf({"Det", 11, {Scattered({2})}}), "no error");
}

TEST(MelWeightMatrixTest, RefusesHostileValues) {
  const auto error = [](int64_t bins, int64_t length, int64_t rate, float low, float high) {
    const auto scalar = [](int64_t value) { return Tensor::Of<int64_t>({}, {value}); };
    return ErrorOf({"MelWeightMatrix",
                    17,
                    {scalar(bins), scalar(length), scalar(rate), Tensor::Of<float>({}, {low}),
                     Tensor::Of<float>({}, {high})}});
  };
  EXPECT_EQ(error(8, 16, 8192, 0, 4096), "no error");
  EXPECT_EQ(error(0, 16, 8192, 0, 4096), "no error");
  EXPECT_NE(error(-1, 16, 8192, 0, 4096), "no error");
  EXPECT_NE(error(8, INT64_MIN, 8192, 0, 4096), "no error");
  EXPECT_NE(error(8, 16, 0, 0, 4096), "no error");
  EXPECT_NE(error(8, 16, -1, 0, 4096), "no error");
  EXPECT_NE(error(8, 16, 8192, -5000, 4096), "no error");
  EXPECT_NE(error(8, 16, 8192, 4096, 0), "no error");
  EXPECT_NE(error(8, 16, 8192, 0, 1e9f), "no error");
  EXPECT_NE(error(8, 16, 8192, 0, std::nanf("")), "no error");
}

}  // namespace
}  // namespace tenon
