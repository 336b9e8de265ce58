#include <gtest/gtest.h>

#include "ops/product_reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

struct GemmCase {
  int64_t m, n, k;
  bool transpose_a, transpose_b;
  Shape c;  // {0}: none
  float alpha = 1, beta = 1;
};

const GemmCase kCases[] = {
    {3, 5, 4, false, false, {0}},
    {3, 5, 4, true, false, {5}},
    {3, 5, 4, false, true, {3, 5}},
    {3, 5, 4, true, true, {3, 1}},
    {3, 5, 4, false, false, {1, 5}, 2, 1},
    {3, 5, 4, false, true, {}, 1, 1},
    {3, 5, 4, false, false, {1}, 0.5f, 0.25f},
    {3, 5, 4, false, true, {5}, 0.5f, 0.25f},
    {3, 5, 4, false, false, {3, 1}, 1, 2},
    {3, 5, 4, false, false, {3, 5}, 1, 0.5f},
    {3, 5, 4, false, false, {3, 5}, 1, 0},
    {17, 1, 33, false, false, {1}},
    {17, 1, 33, true, true, {17, 1}},
    {17, 1, 33, false, true, {1, 1}, 1, 2},
    {1, 70, 33, false, true, {70}},
    {1, 1, 1, false, false, {1, 1}},
    {70, 90, 129, true, true, {90}},
    {0, 5, 4, false, false, {5}},
    {3, 5, 0, false, false, {5}},
    {3, 0, 4, false, false, {0}},
};

template <class T>
std::vector<double> Reference(const GemmCase& c, const Tensor& a, const Tensor& b,
                              const Tensor& addend) {
  ReferenceProduct product = {1, c.m, c.n, c.k, {}, {}};
  product.a = [&](int64_t, int64_t i, int64_t p) {
    return static_cast<double>(a.data<T>()[c.transpose_a ? p * c.m + i : i * c.k + p]);
  };
  product.b = [&](int64_t, int64_t p, int64_t j) {
    return static_cast<double>(b.data<T>()[c.transpose_b ? j * c.k + p : p * c.n + j]);
  };
  const Shape& shape = addend.shape();
  const bool has_rows = shape.rank() == 2 && shape[0] != 1;
  const bool has_columns = shape.rank() > 0 && shape.back() != 1;
  return product.Compute([&](double sum, int64_t, int64_t i, int64_t j) {
    double y = c.alpha * sum;
    if (addend.size() > 0) {
      const int64_t at = (has_rows ? i * shape.back() : 0) + (has_columns ? j : 0);
      y += c.beta * static_cast<double>(addend.data<T>()[at]);
    }
    return std::is_integral_v<T> ? std::trunc(y) : y;
  });
}

template <class T>
void CheckGemm(const GemmCase& c, int32_t opset, double tolerance) {
  const Tensor a = FilledWith<T>(c.transpose_a ? Shape{c.k, c.m} : Shape{c.m, c.k}, 1);
  const Tensor b = FilledWith<T>(c.transpose_b ? Shape{c.n, c.k} : Shape{c.k, c.n}, 2);
  const Tensor addend = FilledWith<T>(c.c, 3);
  const std::vector<double> expected = Reference<T>(c, a, b, addend);
  std::vector<Value> inputs = {a, b};
  if (addend.size() > 0) inputs.push_back(addend);
  for (const size_t first_constant : {size_t{1}, size_t{SIZE_MAX}}) {
    SCOPED_TRACE(Format("{} x {} + {}", a.shape(), b.shape(), addend.shape()));
    const Tensor y =
        RunTensorOp({.op_type = "Gemm",
                     .opset = opset,
                     .inputs = inputs,
                     .attributes = MakeAttributes(Attr("alpha", c.alpha), Attr("beta", c.beta),
                                                  Attr("transA", int64_t{c.transpose_a}),
                                                  Attr("transB", int64_t{c.transpose_b})),
                     .first_constant = first_constant});
    ASSERT_EQ(y.shape(), Shape({c.m, c.n}));
    ExpectNear<T>(y, expected, tolerance);
  }
}

TEST(GemmTest, MultipliesAndAddsEveryType) {
  for (const GemmCase& c : kCases) {
    CheckGemm<float>(c, 13, 1e-5);
    CheckGemm<double>(c, 13, 1e-14);
    CheckGemm<int32_t>(c, 13, 0);
    CheckGemm<int64_t>(c, 13, 0);
    CheckGemm<uint32_t>(c, 13, 0);
    CheckGemm<uint64_t>(c, 13, 0);
  }
}

TEST(GemmTest, OlderVersionsNeedAnAddend) {
  for (const GemmCase& c : kCases) {
    if (c.c == Shape({0})) continue;
    CheckGemm<float>(c, 6, 1e-5);
    CheckGemm<float>(c, 7, 1e-5);
    CheckGemm<float>(c, 9, 1e-5);
  }
}

TEST(GemmTest, RefusesAddendsThatDoNotFit) {
  const Tensor a = FilledWith<float>({2, 3}, 0), b = FilledWith<float>({3, 4}, 1);
  const auto message = [&](Shape c) {
    const auto outputs = RunOp({"Gemm", 0, {a, b, FilledWith<float>(c, 2)}});
    return outputs ? std::string("no error") : outputs.error().message();
  };
  EXPECT_EQ(message({2}), "input 2: expected a shape that broadcasts to [2, 4], got [2]");
  EXPECT_EQ(message({3, 4}), "input 2: expected a shape that broadcasts to [2, 4], got [3, 4]");
  EXPECT_EQ(message({1, 1, 4}),
            "input 2: expected a shape that broadcasts to [2, 4], got [1, 1, 4]");
}

TEST(GemmTest, FusedGemmActivates) {
  const Tensor a = FilledWith<float>({3, 8}, 1), b = FilledWith<float>({8, 5}, 2);
  const Tensor c = FilledWith<float>({5}, 3);
  const Tensor plain = RunTensorOp({"Gemm", 0, {a, b, c}});
  const Tensor y =
      RunTensorOp({.op_type = "FusedGemm",
                   .opset = 1,
                   .inputs = {a, b, c},
                   .attributes = MakeAttributes(Attr("activation", std::string("LeakyRelu")),
                                                Attr("activation_alpha", 0.25f)),
                   .domain = "com.microsoft"});
  for (int64_t i = 0; i < y.size(); ++i) {
    const float x = plain.data<float>()[i];
    EXPECT_FLOAT_EQ(y.data<float>()[i], x < 0 ? 0.25f * x : x);
  }
}

}  // namespace
}  // namespace tenon
