// Quantized products of com.microsoft: MatMulIntegerToFloat, DynamicQuantizeMatMul,
// MatMulInteger16, QGemm.
#include <cmath>

#include "base/arithmetic.h"
#include "ops/framework/quantized_int8.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/int8_product.h"
#include "ops/quantized/quantization.h"

namespace tenon {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

const Tensor* InputOrNull(const KernelContext& context, size_t i) {
  return context.HasInput(i) ? &context.Input(i) : nullptr;
}

Status CheckBias(const ShapeContext& context, size_t i, const SymbolicShape& b) {
  if (!context.HasInput(i)) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const SymbolicShape bias, context.InputOfRank(i, 1));
  const Dim columns = b.rank() > 1 ? b[b.rank() - 1] : Dim(1);
  if (!bias[0].is_number() || !columns.is_number() || bias[0] == columns) return OkStatus();
  return InvalidArgument("input {}: expected [{}], got {}", i, columns, bias);
}

// MatMulIntegerToFloat-1: (A - a_zero) x (B - b_zero) * a_scale * b_scale + bias.
enum ToFloatInput : size_t { kA, kB, kAScale, kBScale, kAZero, kBZero, kBias };

Status InferToFloat(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(kA));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(kB));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferProduct(a, {}, b, {}));
  TENON_RETURN_IF_ERROR(CheckProductValues(context, a, b, kAScale, kBScale));
  TENON_RETURN_IF_ERROR(CheckProductValues(context, a, b, kAZero, kBZero));
  TENON_RETURN_IF_ERROR(CheckBias(context, kBias, b));
  return context.SetOutput(0, std::move(y));
}

class MatMulIntegerToFloat final : public StatefulKernel<InferToFloat> {
 public:
  Status Prepare(KernelInfo& info) { return product_.Prepare(info, kB); }

  Status Run(KernelContext& context) const override {
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    const Tensor* bias = InputOrNull(context, kBias);
    return product_.Run(context, {.a = &context.Input(kA),
                                  .b = &context.Input(kB),
                                  .a_zero = InputOrNull(context, kAZero),
                                  .b_zero = InputOrNull(context, kBZero),
                                  .a_scale = &context.Input(kAScale),
                                  .b_scale = &context.Input(kBScale),
                                  .float_bias = bias ? bias->data<float>() : nullptr,
                                  .type = kernels::Int8Output::kFloat,
                                  .y = y.raw()});
  }

 private:
  Int8Product product_;
};

// DynamicQuantizeMatMul-1: A is quantized as DynamicQuantizeLinear does.
enum DynamicInput : size_t { kScaleOfB = 2, kZeroOfB, kBiasOfY };

Status InferDynamic(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferProduct(a, {}, b, {}));
  const Dim columns = b.rank() > 1 ? b[b.rank() - 1] : Dim(1);
  TENON_RETURN_IF_ERROR(CheckLineValues(context, kScaleOfB, b, columns));
  TENON_RETURN_IF_ERROR(CheckLineValues(context, kZeroOfB, b, columns));
  TENON_RETURN_IF_ERROR(CheckBias(context, kBiasOfY, b));
  return context.SetOutput(0, std::move(y), DataType::kFloat);
}

class DynamicQuantizeMatMul final : public StatefulKernel<InferDynamic> {
 public:
  Status Prepare(KernelInfo& info) { return product_.Prepare(info, 1); }

  Status Run(KernelContext& context) const override {
    const Tensor& x = context.Input(0);
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    const auto n = static_cast<size_t>(x.size());
    DynamicQuantization found;
    Tensor a = Tensor::View(DataType::kUint8, x.shape(), nullptr);
    const Tensor a_scale = Tensor::View(DataType::kFloat, {}, &found.scale);
    const Tensor a_zero = Tensor::View(DataType::kUint8, {}, &found.zero_point);
    const Tensor* bias = InputOrNull(context, kBiasOfY);
    Int8ProductCall call = {.a = &a,
                            .b = &context.Input(1),
                            .a_zero = &a_zero,
                            .b_zero = InputOrNull(context, kZeroOfB),
                            .a_scale = &a_scale,
                            .b_scale = &context.Input(kScaleOfB),
                            .float_bias = bias ? bias->data<float>() : nullptr,
                            .type = kernels::Int8Output::kFloat,
                            .y = y.raw()};
    const size_t range_bytes = RoundUp<size_t>(DynamicRangeBytes(n), 64);
    const size_t a_bytes = RoundUp<size_t>(n, 64);
    const auto bytes = CheckedAdd(range_bytes + a_bytes, product_.ScratchBytes(context, call));
    auto* memory = static_cast<std::byte*>(context.Scratch(bytes.value_or(SIZE_MAX)));
    if (memory == nullptr) return RuntimeException("out of memory for quantizing {}", x.shape());
    found = FindDynamicQuantization(x.values<float>(), memory, context.threads());
    auto* quantized = reinterpret_cast<uint8_t*>(memory + range_bytes);
    QuantizeDynamically(x.values<float>(), found, quantized, context.threads());
    a = Tensor::View(DataType::kUint8, x.shape(), quantized);
    return product_.RunIn(memory + range_bytes + a_bytes, context, call);
  }

 private:
  Int8Product product_;
};

// QGemm-1: alpha * (A - a_zero) x (B - b_zero) * a_scale * b_scale, with C added to the sums, as
// floats or quantized.
struct QGemmAttrs {
  float alpha = 1;
  bool a_transposed = false, b_transposed = false;
  static constexpr auto Fields() {
    using A = QGemmAttrs;
    return std::tuple(Field("alpha", &A::alpha), Field("transA", &A::a_transposed),
                      Field("transB", &A::b_transposed));
  }
};

enum QGemmInput : size_t { kLeft, kLeftScale, kLeftZero, kRight, kRightScale, kRightZero };
enum QGemmMore : size_t { kAddend = 6, kOutScale, kOutZero };

Status InferQGemm(const QGemmAttrs& attrs, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.InputOfRank(kLeft, 2));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.InputOfRank(kRight, 2));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferProduct(a, {.transposed = attrs.a_transposed}, b,
                                                       {.transposed = attrs.b_transposed}));
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {kLeftScale, kLeftZero, kOutScale, kOutZero}));
  const SymbolicShape columns = {y[1]};
  TENON_RETURN_IF_ERROR(CheckLineValues(context, kRightScale, columns, y[1]));
  TENON_RETURN_IF_ERROR(CheckLineValues(context, kRightZero, columns, y[1]));
  if (context.HasInput(kAddend)) {
    const Result<SymbolicShape> c = context.Input(kAddend);
    if (!c && !IsUnknownShape(c.error())) return c.error();
    bool fits = !c || c->rank() <= 2;
    for (size_t back = 1; c && fits && back <= c->rank(); ++back) {
      const Dim &dim = (*c)[c->rank() - back], &wanted = y[2 - back];
      fits = !dim.is_number() || dim == Dim(1) || !wanted.is_number() || dim == wanted;
    }
    if (!fits) return InvalidArgument("input 6: expected to broadcast to {}, got {}", y, *c);
  }
  DataType type = DataType::kFloat;
  if (context.HasInput(kOutScale)) {
    type = context.HasInput(kOutZero) ? context.ElementType(kOutZero) : DataType::kUint8;
  } else if (context.HasInput(kOutZero)) {
    return InvalidArgument("input 8: expected no zero point without a scale in input 7");
  }
  if (type == DataType::kUndefined) return context.SetOutput(0, std::move(y));
  return context.SetOutput(0, std::move(y), type);
}

class QGemm final : public StatefulKernel<InferQGemm> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    return product_.Prepare(info, kRight, {.transposed = attrs_.a_transposed},
                            {.transposed = attrs_.b_transposed});
  }

  Status Run(KernelContext& context) const override {
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    float a_scale = attrs_.alpha * *context.Input(kLeftScale).data<float>();
    const Tensor scale = Tensor::View(DataType::kFloat, {}, &a_scale);
    Int8ProductCall call = {.a = &context.Input(kLeft),
                            .b = &context.Input(kRight),
                            .a_zero = &context.Input(kLeftZero),
                            .b_zero = &context.Input(kRightZero),
                            .a_scale = &scale,
                            .b_scale = &context.Input(kRightScale),
                            .y_scale = InputOrNull(context, kOutScale),
                            .type = OutputOf(y.type()),
                            .y = y.raw()};
    if (context.HasInput(kOutZero)) call.y_zero = ByteAt(context.Input(kOutZero));
    const Tensor* c = InputOrNull(context, kAddend);
    if (c == nullptr) return product_.Run(context, call);
    const int64_t columns = y.shape()[1];
    if (c->size() == columns && (c->rank() == 0 || c->shape().back() == columns)) {
      call.bias = c->data<int32_t>();
      return product_.Run(context, call);
    }
    return RunWithMatrix(context, call, *c);
  }

 private:
  static kernels::Int8Output OutputOf(DataType type) {
    if (type == DataType::kFloat) return kernels::Int8Output::kFloat;
    return type == DataType::kInt8 ? kernels::Int8Output::kInt8 : kernels::Int8Output::kUint8;
  }

  // Sums of 32 bits in scratch memory, to which `c` is added.
  Status RunWithMatrix(KernelContext& context, const Int8ProductCall& call, const Tensor& c) const {
    Tensor& y = context.Output(0);
    Int8ProductCall sums_call = call;
    sums_call.a_scale = sums_call.b_scale = sums_call.y_scale = nullptr;
    sums_call.type = kernels::Int8Output::kInt32;
    const size_t own = RoundUp<size_t>(static_cast<size_t>(y.size()) * sizeof(int32_t), 64);
    const auto bytes = CheckedAdd(own, product_.ScratchBytes(context, sums_call));
    auto* memory = static_cast<std::byte*>(context.Scratch(bytes.value_or(SIZE_MAX)));
    if (memory == nullptr) return RuntimeException("out of memory for sums of {}", y.shape());
    auto* sums = reinterpret_cast<int32_t*>(memory);
    sums_call.y = sums;
    TENON_RETURN_IF_ERROR(product_.RunIn(memory + own, context, sums_call));
    const auto rows = static_cast<size_t>(y.shape()[0]), n = static_cast<size_t>(y.shape()[1]);
    const size_t column_step = c.rank() > 0 && c.shape().back() > 1 ? 1 : 0;
    const bool has_rows = c.rank() == 2 && c.shape()[0] > 1;
    const size_t row_step = has_rows ? static_cast<size_t>(c.shape()[1]) : 0;
    const float y_scale = call.y_scale ? *call.y_scale->data<float>() : 1;
    const Int8Quantization of_y = {y.type() == DataType::kInt8, 1, call.y_zero};
    context.threads().ParallelFor(rows, 16384 / n + 1, [&](size_t begin, size_t end) {
      for (size_t at = begin * n; at < end * n; ++at) {
        const size_t i = at / n, j = at % n;
        const float* b_scales = call.b_scale->data<float>();
        const float scale =
            *call.a_scale->data<float>() * b_scales[call.b_scale->size() > 1 ? j : 0] / y_scale;
        const auto sum = static_cast<int32_t>(
            static_cast<uint32_t>(sums[at]) +
            static_cast<uint32_t>(c.data<int32_t>()[i * row_step + j * column_step]));
        const float value = static_cast<float>(sum) * scale;
        if (y.type() == DataType::kFloat) {
          y.data<float>()[at] = value;
        } else {
          static_cast<uint8_t*>(y.raw())[at] = of_y.ByteOf(value);
        }
      }
    });
    return OkStatus();
  }

  Int8Product product_;
};

// MatMulInteger16-1, modulo 2^32.
Status InferInteger16(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferProduct(a, {}, b, {}));
  const bool is_unsigned =
      context.ElementType(0) == DataType::kUint16 && context.ElementType(1) == DataType::kUint16;
  return context.SetOutput(0, std::move(y), is_unsigned ? DataType::kUint32 : DataType::kInt32);
}

template <class A, class B>
Status MultiplyWords(KernelContext& context) {
  const MatrixStack a = StackOf(context.Input(0).shape(), {}, Side::kLeft);
  const MatrixStack b = StackOf(context.Input(1).shape(), {}, Side::kRight);
  const BatchPairs pairs(a.batch, b.batch);
  auto* y = static_cast<uint32_t*>(context.Output(0).raw());
  return context.ForEachTask(pairs.count() * a.rows, 0, [&](size_t task, std::byte*) {
    const BatchPairs::Pair pair = pairs.At(task / a.rows);
    const A* row =
        context.Input(0).data<A>() + pair.a * a.matrix_stride + task % a.rows * a.row_stride;
    const B* matrix = context.Input(1).data<B>() + pair.b * b.matrix_stride;
    uint32_t* into = y + task * b.columns;
    std::fill_n(into, b.columns, 0u);
    for (size_t p = 0; p < a.columns; ++p) {
      const auto factor = static_cast<uint32_t>(row[p * a.column_stride]);
      for (size_t j = 0; j < b.columns; ++j) {
        into[j] += factor * static_cast<uint32_t>(matrix[p * b.row_stride + j * b.column_stride]);
      }
    }
  });
}

Status RunInteger16(const NoAttrs&, KernelContext& context) {
  if (context.Output(0).size() == 0) return OkStatus();
  const bool a_signed = context.Input(0).type() == DataType::kInt16;
  const bool b_signed = context.Input(1).type() == DataType::kInt16;
  if (a_signed) {
    return b_signed ? MultiplyWords<int16_t, int16_t>(context)
                    : MultiplyWords<int16_t, uint16_t>(context);
  }
  return b_signed ? MultiplyWords<uint16_t, int16_t>(context)
                  : MultiplyWords<uint16_t, uint16_t>(context);
}

constexpr OpRow kRows[] = {
    OpClass<MatMulIntegerToFloat>(
        "MatMulIntegerToFloat",
        {.domain = kMicrosoft, .has_wide_floats = true, .types = kByteTypes}),
    OpClass<DynamicQuantizeMatMul>("DynamicQuantizeMatMul",
                                   {.domain = kMicrosoft, .types = kFloat32Only}),
    Op<InferInteger16, RunInteger16>(
        "MatMulInteger16", {.domain = kMicrosoft, .types = {DataType::kInt16, DataType::kUint16}}),
    OpClass<QGemm>("QGemm", {.domain = kMicrosoft, .types = kByteTypes}),
};

}  // namespace

TENON_OP_FAMILY(QuantizedProducts, kRows);

}  // namespace tenon
