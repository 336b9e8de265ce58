#include <gtest/gtest.h>

#include <limits>

#include "kernels/dispatch.h"
#include "kernels/unary_cases.h"
#include "ops/product_reference.h"
#include "ops/run_op.h"

namespace tenon {
namespace {

// The operands' batch axes are written out, right-aligned, in `batch`.
struct MatMulCase {
  Shape a, b, y;
};

const MatMulCase kCases[] = {
    {{3, 4}, {4, 5}, {3, 5}},
    {{1, 1}, {1, 1}, {1, 1}},
    {{4}, {4}, {}},
    {{4}, {4, 5}, {5}},
    {{3, 4}, {4}, {3}},
    {{4}, {2, 4, 5}, {2, 5}},
    {{2, 3, 4}, {4}, {2, 3}},
    {{2, 3, 4}, {4, 5}, {2, 3, 5}},
    {{2, 3, 4}, {2, 4, 5}, {2, 3, 5}},
    {{3, 4}, {2, 4, 5}, {2, 3, 5}},
    {{7, 1, 3, 4}, {2, 4, 5}, {7, 2, 3, 5}},
    {{1, 2, 3, 4}, {7, 1, 4, 5}, {7, 2, 3, 5}},
    {{2, 3, 9, 17}, {2, 3, 17, 33}, {2, 3, 9, 33}},
    {{1, 200}, {200, 70}, {1, 70}},
    {{200, 31}, {31, 1}, {200, 1}},
    {{1, 5, 1, 31}, {6, 1, 31, 1}, {6, 5, 1, 1}},
    {{61, 130}, {130, 47}, {61, 47}},
    {{300, 1, 3}, {300, 3, 2}, {300, 1, 2}},
    {{0, 4}, {4, 5}, {0, 5}},
    {{3, 0}, {0, 5}, {3, 5}},
    {{3, 4}, {4, 0}, {3, 0}},
    {{0, 3, 4}, {1, 4, 5}, {0, 3, 5}},
};

// The offset of matrix `batch` of y in an operand whose matrices have `size` elements.
int64_t MatrixOffset(const Shape& operand, const Shape& y_batch, int64_t batch, int64_t size) {
  int64_t offset = 0;
  for (size_t back = 1; back <= y_batch.rank(); ++back) {
    const int64_t dim = y_batch[y_batch.rank() - back];
    const int64_t position = batch % dim;
    batch /= dim;
    if (operand.rank() < 2 + back) continue;
    const int64_t own = operand[operand.rank() - 2 - back];
    if (own != 1) offset += position * size;
    size *= own;
  }
  return offset;
}

std::vector<double> Reference(const MatMulCase& c,
                              const std::function<double(const Tensor&, int64_t)>& at,
                              const Tensor& a, const Tensor& b) {
  const bool is_row = c.a.rank() == 1, is_column = c.b.rank() == 1;
  ReferenceProduct product;
  product.k = c.a.back();
  product.m = is_row ? 1 : c.a[c.a.rank() - 2];
  product.n = is_column ? 1 : c.b.back();
  Shape batch(c.y.dims().first(c.y.rank() - (is_row ? 0 : 1) - (is_column ? 0 : 1)));
  product.batches = batch.NumElements();
  product.a = [&](int64_t index, int64_t i, int64_t p) {
    const int64_t start = MatrixOffset(c.a, batch, index, product.m * product.k);
    return at(a, start + i * product.k + p);
  };
  product.b = [&](int64_t index, int64_t p, int64_t j) {
    const int64_t start = MatrixOffset(c.b, batch, index, product.n * product.k);
    return at(b, start + p * product.n + j);
  };
  return product.Compute([](double sum, int64_t, int64_t, int64_t) { return sum; });
}

template <class T>
void CheckMatMul(double tolerance) {
  for (const MatMulCase& c : kCases) {
    const Tensor a = FilledWith<T>(c.a, 1), b = FilledWith<T>(c.b, 2);
    const auto at = [](const Tensor& x, int64_t i) { return static_cast<double>(x.data<T>()[i]); };
    const std::vector<double> expected = Reference(c, at, a, b);
    for (const size_t first_constant : {size_t{1}, size_t{SIZE_MAX}}) {
      SCOPED_TRACE(c.a.ToString() + " x " + c.b.ToString());
      const Tensor y =
          RunTensorOp({.op_type = "MatMul", .inputs = {a, b}, .first_constant = first_constant});
      ASSERT_EQ(y.shape(), c.y);
      ExpectNear<T>(y, expected, tolerance);
    }
  }
}

TEST(MatMulTest, MultipliesFloatsOnEveryTarget) {
  for (const kernels::Target target : kernels::SupportedTargets()) {
    SCOPED_TRACE(kernels::TargetName(target));
    kernels::SetActiveTarget(target);
    CheckMatMul<float>(1e-5);
  }
  kernels::SetActiveTarget(kernels::SupportedTargets().back());
}

TEST(MatMulTest, MultipliesDoublesAndIntegers) {
  CheckMatMul<double>(1e-14);
  CheckMatMul<int32_t>(0);
  CheckMatMul<int64_t>(0);
  CheckMatMul<uint32_t>(0);
  CheckMatMul<uint64_t>(0);
}

TEST(MatMulTest, IntegersWrapAround) {
  const int32_t most = std::numeric_limits<int32_t>::max();
  const Tensor a = Tensor::Of<int32_t>({1, 2}, {most, 1});
  const Tensor b = Tensor::Of<int32_t>({2, 1}, {1, 1});
  EXPECT_EQ(RunTensorOp({"MatMul", 0, {a, b}}).data<int32_t>()[0],
            std::numeric_limits<int32_t>::min());
}

TEST(MatMulTest, RefusesSizesThatDoNotFit) {
  const auto message = [](Shape a, Shape b) {
    const auto outputs = RunOp({"MatMul", 0, {FilledWith<float>(a, 0), FilledWith<float>(b, 0)}});
    return outputs ? std::string("no error") : outputs.error().message();
  };
  EXPECT_EQ(message({2, 3}, {4, 5}),
            "input 1: expected 3 rows to match input 0 [2, 3], got 4 in [4, 5]");
  EXPECT_EQ(message({}, {4, 5}), "input 0: expected a vector or matrices, got a scalar");
  EXPECT_EQ(message({2, 3, 4}, {3, 4, 5}), "shapes [2] and [3] cannot be broadcast together");
}

struct FusedCase {
  Shape a, b, y;
  bool transpose_a = false, transpose_b = false;
  Shape bias = {0};  // {0}: none
  bool residual = false;
};

const FusedCase kFusedCases[] = {
    {{3, 4}, {4, 5}, {3, 5}},
    {{4, 3}, {4, 5}, {3, 5}, true, false},
    {{3, 4}, {5, 4}, {3, 5}, false, true, {5}},
    {{2, 4, 3}, {5, 4}, {2, 3, 5}, true, true, {5}, true},
    {{2, 3, 4}, {4, 5}, {2, 3, 5}, false, false, {5}, true},
    {{2, 3, 4}, {4, 5}, {2, 3, 5}, false, false, {1}, true},
    {{2, 3, 4}, {4, 5}, {2, 3, 5}, false, false, {}, false},
    {{2, 3, 40}, {2, 50, 40}, {2, 3, 50}, false, true, {50}, true},
    {{30, 4}, {4, 1}, {30, 1}, false, false, {1}, true},
    {{2, 4, 30}, {1, 4}, {2, 30, 1}, true, true, {1}, true},
};

void CheckFused(const FusedCase& c, const std::string& activation, const UnaryCase& test) {
  std::vector<float> parameters = {test.a, test.b};
  parameters.resize(InfoOf(test.op).parameter_count());
  const Tensor a = FilledWith<float>(c.a, 1), b = FilledWith<float>(c.b, 2);
  const Tensor bias = FilledWith<float>(c.bias, 3), residual = FilledWith<float>(c.y, 4);
  ReferenceProduct product;
  const size_t rank_a = c.a.rank();
  product.k = c.a[rank_a - (c.transpose_a ? 2 : 1)];
  product.m = c.a[rank_a - (c.transpose_a ? 1 : 2)];
  product.n = c.y.back();
  product.batches = c.y.Product(0, c.y.rank() - 2);
  const bool is_b_shared = c.b.rank() == 2;
  product.a = [&](int64_t batch, int64_t i, int64_t p) {
    const int64_t at = c.transpose_a ? p * product.m + i : i * product.k + p;
    return a.data<float>()[batch * product.m * product.k + at];
  };
  product.b = [&](int64_t batch, int64_t p, int64_t j) {
    const int64_t at = c.transpose_b ? j * product.k + p : p * product.n + j;
    return b.data<float>()[(is_b_shared ? 0 : batch * product.n * product.k) + at];
  };
  const auto expected = product.Compute([&](double sum, int64_t batch, int64_t i, int64_t j) {
    double y = 0.5 * sum;
    if (bias.size() > 0) y += bias.data<float>()[bias.size() == 1 ? 0 : j];
    if (c.residual) y += residual.data<float>()[(batch * product.m + i) * product.n + j];
    return static_cast<double>(test.reference(y, test.a, test.b));
  });
  std::vector<Value> inputs = {a, b, bias.size() ? Value(bias) : Value(),
                               c.residual ? Value(residual) : Value()};
  for (const bool is_constant : {false, true}) {
    SCOPED_TRACE(c.a.ToString() + " x " + c.b.ToString() + " " + activation);
    OpCall call = {.op_type = "FusedMatMul",
                   .opset = 1,
                   .inputs = inputs,
                   .attributes = MakeAttributes(
                       Attr("alpha", 0.5f), Attr("transA", int64_t{c.transpose_a}),
                       Attr("transB", int64_t{c.transpose_b}), Attr("activation", activation),
                       Attr("activation_params", parameters)),
                   .domain = "com.tenon"};
    if (is_constant) call.first_constant = 1;
    const Tensor y = RunTensorOp(std::move(call));
    ASSERT_EQ(y.shape(), c.y);
    ExpectNear<float>(y, expected, 1e-5);
  }
}

TEST(FusedMatMulTest, AddsAndActivates) {
  for (const FusedCase& c : kFusedCases) {
    CheckFused(c, "", CaseOf(UnaryOp::kIdentity));
    for (const UnaryCase& test : kUnaryCases) {
      if (InfoOf(test.op).Has(kFused)) CheckFused(c, std::string(InfoOf(test.op).name), test);
    }
    CheckFused(c, "Silu", CaseOf(UnaryOp::kSwish));
  }
}

TEST(FusedMatMulTest, RefusesWhatDoesNotFit) {
  const Tensor a = FilledWith<float>({2, 3}, 0), b = FilledWith<float>({3, 4}, 1);
  const auto message = [&](Value bias, Value residual, std::string activation) {
    const auto outputs = RunOp({.op_type = "FusedMatMul",
                                .opset = 1,
                                .inputs = {a, b, std::move(bias), std::move(residual)},
                                .attributes = MakeAttributes(Attr("activation", activation)),
                                .domain = "com.tenon"});
    return outputs ? std::string("no error") : outputs.error().message();
  };
  EXPECT_EQ(message(FilledWith<float>({2}, 0), {}, ""),
            "input 2: expected a shape that broadcasts to [1, 4], got [2]");
  EXPECT_EQ(message({}, FilledWith<float>({4}, 0), ""),
            "input 3: expected the output's shape [2, 4], got [4]");
  EXPECT_EQ(message({}, {}, "Softmax"),
            "attribute 'activation': expected one that can be fused, got 'Softmax'");
}

// com.microsoft's transBatch: the matrices lie between the first axis and the last.
TEST(FusedMatMulTest, SplitsMatricesByTheirBatchAxes) {
  constexpr int64_t kBatch = 6, kM = 5, kK = 7, kN = 4;
  const Tensor b = FilledWith<float>({2, 3, kK, kN}, 2);
  for (const bool is_transposed : {false, true}) {
    const Tensor a =
        FilledWith<float>(is_transposed ? Shape{kK, 2, 3, kM} : Shape{kM, 2, 3, kK}, 1);
    ReferenceProduct product = {kBatch, kM, kN, kK, {}, {}};
    product.a = [&](int64_t batch, int64_t i, int64_t p) {
      return a.data<float>()[is_transposed ? (p * kBatch + batch) * kM + i
                                           : (i * kBatch + batch) * kK + p];
    };
    product.b = [&](int64_t batch, int64_t p, int64_t j) {
      return b.data<float>()[(batch * kK + p) * kN + j];
    };
    const Tensor y =
        RunTensorOp({.op_type = "FusedMatMul",
                     .opset = 1,
                     .inputs = {a, b},
                     .attributes = MakeAttributes(Attr("transBatchA", int64_t{1}),
                                                  Attr("transA", int64_t{is_transposed})),
                     .domain = "com.microsoft"});
    ASSERT_EQ(y.shape(), Shape({2, 3, kM, kN}));
    ExpectNear<float>(y, product.Compute([](double sum, int64_t, int64_t, int64_t) { return sum; }),
                      1e-5);
  }
}

}  // namespace
}  // namespace tenon
