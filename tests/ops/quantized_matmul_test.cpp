#include <algorithm>
#include <cmath>

#include "ops/op_cases.h"
#include "ops/reference.h"

namespace tenon {
namespace {

template <class T>
Tensor Bytes(const Shape& shape, uint32_t seed) {
  Tensor x = Tensor::Allocate(DataTypeOf<T>(), shape).value();
  uint32_t state = seed * 2654435761u + 1;
  for (int64_t i = 0; i < x.size(); ++i) {
    state = state * 1664525u + 1013904223u;
    x.data<T>()[i] = static_cast<T>(state >> 24);
  }
  return x;
}

struct ProductCase {
  Shape a, b, y;
  Shape a_values, b_values;  // of zero points and scales
};

const ProductCase kCases[] = {
    {{3, 4}, {4, 5}, {3, 5}, {}, {}},
    {{3, 4}, {4, 5}, {3, 5}, {1}, {5}},
    {{3, 4}, {4, 5}, {3, 5}, {3}, {5}},
    {{2, 3, 7}, {7, 40}, {2, 3, 40}, {}, {40}},
    {{2, 3, 7}, {7, 40}, {2, 3, 40}, {2, 3, 1}, {}},
    {{2, 3, 7}, {2, 7, 5}, {2, 3, 5}, {2, 3, 1}, {2, 1, 5}},
    {{2, 1, 3, 7}, {3, 7, 5}, {2, 3, 3, 5}, {3}, {5}},
    {{65, 130}, {130, 70}, {65, 70}, {}, {70}},
    {{4}, {4, 2}, {2}, {}, {}},
    {{0, 4}, {4, 2}, {0, 2}, {}, {}},
    {{2, 0}, {0, 3}, {2, 3}, {}, {}},
};

// The value for a row or column among one, those of a matrix, or those of all matrices.
template <class T>
double ValueFor(const Tensor& values, int64_t matrix, int64_t line, int64_t lines) {
  if (values.size() == 1) return values.data<T>()[0];
  return values.data<T>()[values.size() == lines ? line : matrix * lines + line];
}

template <class A, class B>
struct Reference {
  const ProductCase& c;
  const Tensor &a, &b, &a_zero, &b_zero;

  int64_t rows() const { return c.a.rank() > 1 ? c.a[c.a.rank() - 2] : 1; }
  int64_t columns() const { return c.b.back(); }
  int64_t depth() const { return c.a.back(); }
  // Numbers of the matrices that make element i, of which those of a lead.
  std::pair<int64_t, int64_t> Matrices(int64_t i) const {
    const int64_t matrix = i / (rows() * columns());
    const int64_t a_count =
        std::max<int64_t>(1, c.a.Product(0, c.a.rank() - std::min<size_t>(2, c.a.rank())));
    const int64_t b_count = std::max<int64_t>(1, c.b.Product(0, c.b.rank() - 2));
    const int64_t count = c.y.NumElements() / (rows() * columns());
    return {a_count == count ? matrix : matrix / (count / a_count), matrix % b_count};
  }
  double Sum(int64_t i) const {
    const auto [ma, mb] = Matrices(i);
    const int64_t row = i / columns() % rows(), column = i % columns();
    double sum = 0;
    for (int64_t p = 0; p < depth(); ++p) {
      sum +=
          (a.data<A>()[(ma * rows() + row) * depth() + p] - ValueFor<A>(a_zero, ma, row, rows())) *
          (b.data<B>()[(mb * depth() + p) * columns() + column] -
           ValueFor<B>(b_zero, mb, column, columns()));
    }
    return sum;
  }
};

template <class A, class B>
void CheckProducts(size_t first_constant) {
  for (const ProductCase& c : kCases) {
    SCOPED_TRACE(c.a.ToString() + " x " + c.b.ToString());
    const Tensor a = Bytes<A>(c.a, 1), b = Bytes<B>(c.b, 2);
    const Tensor a_zero = Bytes<A>(c.a_values, 3), b_zero = Bytes<B>(c.b_values, 4);
    const Reference<A, B> reference = {c, a, b, a_zero, b_zero};
    OpCall call{"MatMulInteger", 10, {a, b, a_zero, b_zero}};
    call.first_constant = first_constant;
    ExpectElements<int32_t>(RunTensorOp(std::move(call)), c.y, 0,
                            [&](int64_t i) { return reference.Sum(i); });

    Tensor a_scale = Scattered(c.a_values, 5), b_scale = Scattered(c.b_values, 6);
    for (Tensor* scale : {&a_scale, &b_scale}) {
      for (float& v : std::span(scale->data<float>(), static_cast<size_t>(scale->size()))) {
        v = std::abs(v) / 50 + 0.01f;
      }
    }
    const Tensor y_scale = Tensor::Of<float>({}, {0.37f});
    const Tensor y_zero = Tensor::Of<A>({}, {static_cast<A>(9)});
    OpCall linear{"QLinearMatMul", 10, {a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero}};
    linear.first_constant = first_constant;
    const Tensor y = RunTensorOp(std::move(linear));
    // Where a scale per row meets one per column, the product is rounded twice.
    const double tolerance = a_scale.size() > 1 && b_scale.size() > 1 ? 1 : 0;
    ASSERT_EQ(y.shape(), c.y);
    for (int64_t i = 0; i < y.size(); ++i) {
      const auto [ma, mb] = reference.Matrices(i);
      const int64_t row = i / reference.columns() % reference.rows();
      const int64_t column = i % reference.columns();
      const auto scale_a = static_cast<float>(ValueFor<float>(a_scale, ma, row, reference.rows()));
      const auto scale_b =
          static_cast<float>(ValueFor<float>(b_scale, mb, column, reference.columns()));
      const float scaled = static_cast<float>(reference.Sum(i)) * (scale_a * scale_b / 0.37f);
      const double expected = std::clamp<double>(
          std::nearbyint(scaled) + 9, std::numeric_limits<A>::min(), std::numeric_limits<A>::max());
      ASSERT_NEAR(y.data<A>()[i], expected, a_scale.size() > 1 ? std::max(tolerance, 1.0) : 0) << i;
    }
  }
}

TEST(QuantizedMatMulTest, FollowsTheFormula) {
  CheckProducts<uint8_t, uint8_t>(SIZE_MAX);
  CheckProducts<uint8_t, int8_t>(SIZE_MAX);
  CheckProducts<int8_t, uint8_t>(SIZE_MAX);
  CheckProducts<int8_t, int8_t>(SIZE_MAX);
}

TEST(QuantizedMatMulTest, PacksConstants) {
  CheckProducts<uint8_t, int8_t>(1);
  CheckProducts<int8_t, uint8_t>(1);
}

TEST(QuantizedMatMulTest, ZeroPointsMayBeLeftOut) {
  const Tensor a = Bytes<uint8_t>({2, 3}, 1), b = Bytes<int8_t>({3, 2}, 2);
  const Tensor none_a = Tensor::Of<uint8_t>({}, {0}), none_b = Tensor::Of<int8_t>({}, {0});
  EXPECT_EQ(ElementsOf<int32_t>(RunTensorOp({"MatMulInteger", 10, {a, b}})),
            ElementsOf<int32_t>(RunTensorOp({"MatMulInteger", 10, {a, b, none_a, none_b}})));
}

TEST(QuantizedMatMulTest, MultipliesFloat8) {
  const auto one = [](uint8_t bits) {
    Tensor x = Tensor::Allocate(DataType::kFloat8e4m3fn, {1, 1}).value();
    *static_cast<uint8_t*>(x.raw()) = bits;
    return x;
  };
  const Tensor scale = Tensor::Of<float>({}, {1});
  const Tensor zero = one(0).Reshaped({1});
  // 2 x 1.5 = 3
  const Tensor y = RunTensorOp(
      {"QLinearMatMul", 21, {one(0x40), scale, zero, one(0x3c), scale, zero, scale, zero}});
  EXPECT_EQ(*static_cast<const uint8_t*>(y.raw()), 0x44);
}

TEST(QuantizedMatMulTest, RefusesWhatDoesNotFit) {
  const Tensor a = Bytes<uint8_t>({2, 3}, 1), b = Bytes<int8_t>({3, 2}, 2);
  EXPECT_NE(ErrorOf({"MatMulInteger", 10, {a, a}}), "no error");
  EXPECT_NE(ErrorOf({"MatMulInteger", 10, {a, b, Bytes<uint8_t>({3}, 1)}}), "no error");
  EXPECT_NE(ErrorOf({"MatMulInteger", 10, {a, b, Bytes<uint8_t>({0}, 1)}}), "no error");
}

}  // namespace
}  // namespace tenon
