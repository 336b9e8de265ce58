// Gemm and its fusion with an activation.
#include <limits>

#include "ops/framework/fused_activation.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/matrix_product.h"
#include "ops/linear/scalar_matmul.h"

namespace tenon {
namespace {

// Gemm-7: Y = alpha * A' x B' + beta * C, where C broadcasts to [m, n].
struct GemmAttrs {
  float alpha = 1;
  float beta = 1;
  bool transpose_a = false;
  bool transpose_b = false;
  static constexpr auto Fields() {
    return std::tuple(Field("alpha", &GemmAttrs::alpha), Field("beta", &GemmAttrs::beta),
                      Field("transA", &GemmAttrs::transpose_a),
                      Field("transB", &GemmAttrs::transpose_b));
  }
};

template <class Attrs>
Status InferGemm(const Attrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.InputOfRank(0, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.InputOfRank(1, 2));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y,
                         InferProduct(a, {attrs.transpose_a}, b, {attrs.transpose_b}));
  TENON_RETURN_IF_ERROR(CheckAddend(context, 2, y[0], y[1]));
  return context.SetOutput(0, std::move(y));
}

Status RunGemm(const GemmAttrs& attrs, const MatrixProduct& product, KernelContext& context) {
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  ProductAddends addends;
  if (context.HasInput(2)) {
    AddMatrix(context.Input(2), attrs.beta, static_cast<size_t>(y.shape()[0]),
              static_cast<size_t>(y.shape()[1]), y, &addends);
  }
  return product.Run(context, addends);
}

class Gemm final : public StatefulKernel<InferGemm<GemmAttrs>> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    return product_.Prepare(info, {{attrs_.transpose_a}, {attrs_.transpose_b}, attrs_.alpha, {}});
  }
  Status Run(KernelContext& context) const override { return RunGemm(attrs_, product_, context); }

 private:
  MatrixProduct product_;
};

// `x` as a T, clipped to the range of T.
template <class T>
T Narrow(double x) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(x);
  if (!(x > static_cast<double>(std::numeric_limits<T>::min()))) {
    return std::numeric_limits<T>::min();
  }
  // The limit itself may round up to a double that is out of T's range.
  if (x >= static_cast<double>(std::numeric_limits<T>::max())) return std::numeric_limits<T>::max();
  return static_cast<T>(x);
}

// y = alpha * y + beta * c on the elements of a product, c being broadcast; c may be null.
template <class T>
void ScaleAndAdd(const GemmAttrs& attrs, const Tensor* c, Tensor& y) {
  const bool is_scaled = attrs.alpha != 1 || (c != nullptr && attrs.beta != 1);
  const int64_t rows = y.shape()[0], columns = y.shape()[1];
  int64_t row_step = 0, column_step = 0;
  if (c != nullptr) {
    const Shape& shape = c->shape();
    if (shape.rank() > 0 && shape.back() != 1) column_step = 1;
    if (shape.rank() > 1 && shape[shape.rank() - 2] != 1) row_step = shape.back();
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j) {
      T& element = y.data<T>()[i * columns + j];
      const T addend = c ? c->data<T>()[i * row_step + j * column_step] : T{0};
      if (is_scaled) {
        element = Narrow<T>(attrs.alpha * static_cast<double>(element) +
                            attrs.beta * static_cast<double>(addend));
      } else if constexpr (std::is_integral_v<T>) {
        using U = std::make_unsigned_t<T>;
        element = static_cast<T>(static_cast<U>(element) + static_cast<U>(addend));
      } else {
        element += addend;
      }
    }
  }
}

Status RunScalarGemm(const GemmAttrs& attrs, KernelContext& context) {
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  const Tensor* c = context.HasInput(2) && attrs.beta != 0 ? &context.Input(2) : nullptr;
  TENON_RETURN_IF_ERROR(RunScalarProduct(context, {attrs.transpose_a}, {attrs.transpose_b}));
  return VisitScalarProductType(y.type(), [&]<class T>(T) -> Status {
    ScaleAndAdd<T>(attrs, c, y);
    return OkStatus();
  });
}

// com.microsoft FusedGemm-1: Gemm, then the activation.
struct FusedGemmAttrs : GemmAttrs, ActivationAttrs {
  static constexpr auto Fields() {
    return std::tuple_cat(GemmAttrs::Fields(), ActivationAttrs::Fields());
  }
};

class FusedGemm final : public StatefulKernel<InferGemm<FusedGemmAttrs>> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    ProductOptions options = {{attrs_.transpose_a}, {attrs_.transpose_b}, attrs_.alpha, {}};
    TENON_ASSIGN_OR_RETURN(options.activation, FusedActivation(attrs_));
    return product_.Prepare(info, options);
  }
  Status Run(KernelContext& context) const override { return RunGemm(attrs_, product_, context); }

 private:
  MatrixProduct product_;
};

class ScalarFusedGemm final : public StatefulKernel<InferGemm<FusedGemmAttrs>> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    TENON_ASSIGN_OR_RETURN(activation_, FusedActivation(attrs_));
    return OkStatus();
  }

  Status Run(KernelContext& context) const override {
    TENON_RETURN_IF_ERROR(RunScalarGemm(attrs_, context));
    Tensor& y = context.Output(0);
    return VisitScalarProductType(y.type(), [&]<class T>(T) {
      for (T& element : std::span(y.data<T>(), static_cast<size_t>(y.size()))) {
        const auto x = static_cast<double>(element);
        const double activated = Activated(activation_, x);
        // An integer may have more digits than a double.
        if (activated != x) element = Narrow<T>(activated);
      }
      return OkStatus();
    });
  }

 private:
  kernels::ActivationSpec activation_;
};

constexpr OpRow kRows[] = {
    OpClass<Gemm>("Gemm", {.types = kProductTypes}),
    Op<InferGemm<GemmAttrs>, RunScalarGemm>("Gemm", {.types = kScalarProductTypes}),
    OpClass<FusedGemm>("FusedGemm", {.domain = "com.microsoft", .types = kProductTypes}),
    OpClass<ScalarFusedGemm>("FusedGemm",
                             {.domain = "com.microsoft", .types = kScalarProductTypes}),
};

}  // namespace

TENON_OP_FAMILY(Gemm, kRows);

}  // namespace tenon
