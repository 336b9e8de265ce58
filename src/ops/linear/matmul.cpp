// MatMul and the fused operators that begin with one.
#include <algorithm>

#include "ops/framework/fused_activation.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/matrix_product.h"
#include "ops/linear/scalar_matmul.h"

namespace tenon {
namespace {

// MatMul-1.
Status InferMatMul(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferProduct(a, {}, b, {}));
  return context.SetOutput(0, std::move(y));
}

class MatMul final : public StatefulKernel<InferMatMul> {
 public:
  Status Prepare(KernelInfo& info) { return product_.Prepare(info, {}); }
  Status Run(KernelContext& context) const override { return product_.Run(context, {}); }

 private:
  MatrixProduct product_;
};

Status RunScalarMatMul(const NoAttrs&, KernelContext& context) {
  return RunScalarProduct(context, {}, {});
}

// com.tenon FusedMatMul-1: Y = activation(alpha * A' x B' + bias + residual).
//   A, B              as MatMul's; A' and B' have their last two axes exchanged if transA, transB
//   bias (optional)   [n], or one element
//   residual (optional)  of Y's shape
struct FusedMatMulAttrs {
  float alpha = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  std::string activation;
  std::vector<float> activation_params;  // see FusedActivation
  static constexpr auto Fields() {
    using A = FusedMatMulAttrs;
    return std::tuple(Field("alpha", &A::alpha), Field("transA", &A::transpose_a),
                      Field("transB", &A::transpose_b), Field("activation", &A::activation),
                      Field("activation_params", &A::activation_params));
  }
};

// The shape to which bias is added: a vector on the right has no columns for it.
Dim BiasSize(const SymbolicShape& b, const SymbolicShape& y) {
  return b.rank() > 1 ? y[y.rank() - 1] : Dim(1);
}

Status CheckResidual(const ShapeContext& context, size_t i, const SymbolicShape& y) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> residual = context.Input(i);
  if (!residual) return IsUnknownShape(residual.error()) ? OkStatus() : residual.error();
  bool fits = residual->rank() == y.rank();
  for (size_t axis = 0; fits && axis < y.rank(); ++axis) {
    const Dim& dim = (*residual)[axis];
    fits = !dim.is_number() || !y[axis].is_number() || dim == y[axis];
  }
  if (fits) return OkStatus();
  return InvalidArgument("input {}: expected the output's shape {}, got {}", i, y, *residual);
}

Status InferFusedMatMul(const FusedMatMulAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y,
                         InferProduct(a, {attrs.transpose_a}, b, {attrs.transpose_b}));
  TENON_RETURN_IF_ERROR(CheckAddend(context, 2, Dim(1), BiasSize(b, y)));
  TENON_RETURN_IF_ERROR(CheckResidual(context, 3, y));
  return context.SetOutput(0, std::move(y));
}

class FusedMatMul final : public StatefulKernel<InferFusedMatMul> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    ProductOptions options = {{attrs_.transpose_a}, {attrs_.transpose_b}, attrs_.alpha, {}};
    TENON_ASSIGN_OR_RETURN(options.activation,
                           FusedActivation(attrs_.activation, attrs_.activation_params));
    return product_.Prepare(info, options);
  }

  Status Run(KernelContext& context) const override {
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    ProductAddends addends;
    const bool has_columns = context.Input(1).rank() > 1;
    const size_t columns = has_columns ? static_cast<size_t>(y.shape().back()) : 1;
    const size_t rows = static_cast<size_t>(y.size()) / columns;
    if (context.HasInput(3)) AddResidual(context.Input(3), columns, &addends);
    if (context.HasInput(2)) AddMatrix(context.Input(2), 1, rows, columns, y, &addends);
    return product_.Run(context, addends);
  }

 private:
  MatrixProduct product_;
};

// com.microsoft FusedMatMul-1: Y = alpha * A' x B'. transBatchA: the matrices of A' are split by
// A's batch axes, which lie between its first and its last.
struct MsFusedMatMulAttrs {
  float alpha = 1;
  bool transpose_a = false, transpose_b = false;
  bool split_a = false, split_b = false;
  static constexpr auto Fields() {
    using A = MsFusedMatMulAttrs;
    return std::tuple(Field("alpha", &A::alpha), Field("transA", &A::transpose_a),
                      Field("transB", &A::transpose_b), Field("transBatchA", &A::split_a),
                      Field("transBatchB", &A::split_b));
  }
  OperandForm a() const { return {transpose_a, split_a}; }
  OperandForm b() const { return {transpose_b, split_b}; }
  static Result<kernels::ActivationSpec> Activation() { return kernels::ActivationSpec(); }
};

Status InferMsFusedMatMul(const MsFusedMatMulAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  if ((attrs.split_a || attrs.split_b) && (a.rank() < 3 || a.rank() != b.rank())) {
    return InvalidArgument(
        "transBatchA and transBatchB need inputs of one rank of at least 3, got {} and {}", a, b);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferProduct(a, attrs.a(), b, attrs.b()));
  return context.SetOutput(0, std::move(y));
}

class MsFusedMatMul final : public StatefulKernel<InferMsFusedMatMul> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    return product_.Prepare(info, {attrs_.a(), attrs_.b(), attrs_.alpha, {}});
  }
  Status Run(KernelContext& context) const override { return product_.Run(context, {}); }

 private:
  MatrixProduct product_;
};

// com.microsoft FusedMatMulActivation-1: the same, then an activation.
struct MatMulActivationAttrs : MsFusedMatMulAttrs, ActivationAttrs {
  static constexpr auto Fields() {
    return std::tuple_cat(MsFusedMatMulAttrs::Fields(), ActivationAttrs::Fields());
  }
  Result<kernels::ActivationSpec> Activation() const { return FusedActivation(*this); }
};

Status InferMatMulActivation(const MatMulActivationAttrs& attrs, ShapeContext& context) {
  return InferMsFusedMatMul(attrs, context);
}

class MatMulActivation final : public StatefulKernel<InferMatMulActivation> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    ProductOptions options = {attrs_.a(), attrs_.b(), attrs_.alpha, {}};
    TENON_ASSIGN_OR_RETURN(options.activation, attrs_.Activation());
    return product_.Prepare(info, options);
  }
  Status Run(KernelContext& context) const override { return product_.Run(context, {}); }

 private:
  MatrixProduct product_;
};

// Either operator on doubles.
template <class Attrs>
Status RunDoubleMatMul(const Attrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const kernels::ActivationSpec activation, attrs.Activation());
  TENON_RETURN_IF_ERROR(RunScalarProduct(context, attrs.a(), attrs.b()));
  Tensor& y = context.Output(0);
  for (int64_t i = 0; i < y.size(); ++i) y.data<double>()[i] *= attrs.alpha;
  Activate(activation, y.data<double>(), static_cast<size_t>(y.size()));
  return OkStatus();
}

constexpr TypeSet kDouble = {DataType::kDouble};
constexpr auto RunDoubleMsFusedMatMul = &RunDoubleMatMul<MsFusedMatMulAttrs>;

constexpr OpRow kRows[] = {
    OpClass<MatMul>("MatMul", {.types = kProductTypes}),
    Op<InferMatMul, RunScalarMatMul>("MatMul", {.types = kScalarProductTypes}),
    OpClass<FusedMatMul>("FusedMatMul", {.domain = "com.tenon", .types = kProductTypes}),
    OpClass<MsFusedMatMul>("FusedMatMul", {.domain = "com.microsoft", .types = kProductTypes}),
    Op<InferMsFusedMatMul, RunDoubleMsFusedMatMul>("FusedMatMul",
                                                   {.domain = "com.microsoft", .types = kDouble}),
    OpClass<MsFusedMatMul>("TransposeMatMul", {.domain = "com.microsoft", .types = kProductTypes}),
    Op<InferMsFusedMatMul, RunDoubleMsFusedMatMul>("TransposeMatMul",
                                                   {.domain = "com.microsoft", .types = kDouble}),
    OpClass<MatMulActivation>("FusedMatMulActivation",
                              {.domain = "com.microsoft", .types = kProductTypes}),
    Op<InferMatMulActivation, RunDoubleMatMul<MatMulActivationAttrs>>(
        "FusedMatMulActivation", {.domain = "com.microsoft", .types = kDouble}),
};

}  // namespace

TENON_OP_FAMILY(MatMul, kRows);

}  // namespace tenon
