// MatMulInteger and QLinearMatMul.
#include <cmath>

#include "ops/framework/element_conversion.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/int8_product.h"
#include "ops/quantized/quantization.h"

namespace tenon {
namespace {

const Tensor* InputOrNull(const KernelContext& context, size_t i) {
  return context.HasInput(i) ? &context.Input(i) : nullptr;
}

// MatMulInteger-10: (A - a_zero_point) x (B - b_zero_point) in 32 bits.
Status InferMatMulInteger(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferProduct(a, {}, b, {}));
  TENON_RETURN_IF_ERROR(CheckProductValues(context, a, b, 2, 3));
  return context.SetOutput(0, std::move(y), DataType::kInt32);
}

class MatMulInteger final : public StatefulKernel<InferMatMulInteger> {
 public:
  Status Prepare(KernelInfo& info) { return product_.Prepare(info, 1); }

  Status Run(KernelContext& context) const override {
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    return product_.Run(context, {.a = &context.Input(0),
                                  .b = &context.Input(1),
                                  .a_zero = InputOrNull(context, 2),
                                  .b_zero = InputOrNull(context, 3),
                                  .y = y.raw()});
  }

 private:
  Int8Product product_;
};

// QLinearMatMul-21.
enum QLinearInput : size_t { kA, kAScale, kAZero, kB, kBScale, kBZero, kYScale, kYZero };

Status CheckOneElement(const ShapeContext& context, size_t i) {
  const Result<SymbolicShape> shape = context.Input(i);
  if (!shape) return IsUnknownShape(shape.error()) ? OkStatus() : shape.error();
  const Dim count = shape->NumElements();
  if (!count.is_number() || count == Dim(1)) return OkStatus();
  return InvalidArgument("input {}: expected one element, got {}", i, *shape);
}

Status InferQLinearMatMul(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(kA));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(kB));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferProduct(a, {}, b, {}));
  TENON_RETURN_IF_ERROR(CheckProductValues(context, a, b, kAScale, kBScale));
  TENON_RETURN_IF_ERROR(CheckProductValues(context, a, b, kAZero, kBZero));
  TENON_RETURN_IF_ERROR(CheckOneElement(context, kYScale));
  TENON_RETURN_IF_ERROR(CheckOneElement(context, kYZero));
  const DataType type = context.ElementType(kYZero);
  if (type == DataType::kUndefined) return context.SetOutput(0, std::move(y));
  return context.SetOutput(0, std::move(y), type);
}

// One value for each line of the matrices, read from a tensor of one, a matrix's or all lines'.
class LineReader {
 public:
  LineReader(const Tensor& values, size_t lines) : values_(values), lines_(lines) {}

  double At(size_t matrix, size_t line) const {
    const auto count = static_cast<size_t>(values_.size());
    const size_t at = count == 1 ? 0 : count == lines_ ? line : matrix * lines_ + line;
    double value = 0;
    LoadElements(values_, at, 1, &value);
    return value;
  }

 private:
  const Tensor& values_;
  size_t lines_;
};

// Any element types, element by element, because products of float8 are rare.
Status RunScalarQLinearMatMul(KernelContext& context) {
  Tensor& y = context.Output(0);
  const MatrixStack a = StackOf(context.Input(kA).shape(), {}, Side::kLeft);
  const MatrixStack b = StackOf(context.Input(kB).shape(), {}, Side::kRight);
  const BatchPairs pairs(a.batch, b.batch);
  const LineReader a_scale(context.Input(kAScale), a.rows), a_zero(context.Input(kAZero), a.rows);
  const LineReader b_scale(context.Input(kBScale), b.columns);
  const LineReader b_zero(context.Input(kBZero), b.columns);
  double y_scale = 0, y_zero = 0;
  LoadElements(context.Input(kYScale), 0, 1, &y_scale);
  LoadElements(context.Input(kYZero), 0, 1, &y_zero);
  const auto range = IntegerRangeOf(y.type());
  return context.ForEachTask(pairs.count() * a.rows, 0, [&](size_t task, std::byte*) {
    const size_t matrix = task / a.rows, i = task % a.rows;
    const BatchPairs::Pair pair = pairs.At(matrix);
    for (size_t j = 0; j < b.columns; ++j) {
      double sum = 0;
      for (size_t p = 0; p < a.columns; ++p) {
        double left = 0, right = 0;
        LoadElements(context.Input(kA),
                     pair.a * a.matrix_stride + i * a.row_stride + p * a.column_stride, 1, &left);
        LoadElements(context.Input(kB),
                     pair.b * b.matrix_stride + p * b.row_stride + j * b.column_stride, 1, &right);
        sum += (left - a_zero.At(pair.a, i)) * (right - b_zero.At(pair.b, j));
      }
      double value = sum * (a_scale.At(pair.a, i) * b_scale.At(pair.b, j) / y_scale);
      if (range) {
        value = std::fmin(std::fmax(std::nearbyint(value) + y_zero, range->min), range->max);
      } else {
        value += y_zero;
      }
      StoreElements(&value, task * b.columns + j, 1, {}, y);
    }
  });
}

class QLinearMatMul final : public StatefulKernel<InferQLinearMatMul> {
 public:
  Status Prepare(KernelInfo& info) {
    is_bytes_ = kByteTypes.Contains(info.ElementType(kA)) &&
                kByteTypes.Contains(info.ElementType(kB)) &&
                kByteTypes.Contains(info.ElementType(kYZero));
    return is_bytes_ ? product_.Prepare(info, kB) : OkStatus();
  }

  Status Run(KernelContext& context) const override {
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    if (!is_bytes_) return RunScalarQLinearMatMul(context);
    double y_zero = 0;
    LoadElements(context.Input(kYZero), 0, 1, &y_zero);
    return product_.Run(context, {.a = &context.Input(kA),
                                  .b = &context.Input(kB),
                                  .a_zero = &context.Input(kAZero),
                                  .b_zero = &context.Input(kBZero),
                                  .a_scale = &context.Input(kAScale),
                                  .b_scale = &context.Input(kBScale),
                                  .y_scale = &context.Input(kYScale),
                                  .y_zero = static_cast<int32_t>(y_zero),
                                  .type = y.type() == DataType::kInt8 ? kernels::Int8Output::kInt8
                                                                      : kernels::Int8Output::kUint8,
                                  .y = y.raw()});
  }

 private:
  bool is_bytes_ = false;
  Int8Product product_;
};

constexpr TypeSet kQLinearTypes =
    kByteTypes | TypeSet{DataType::kFloat8e4m3fn, DataType::kFloat8e4m3fnuz, DataType::kFloat8e5m2,
                         DataType::kFloat8e5m2fnuz};

constexpr OpRow kRows[] = {
    OpClass<MatMulInteger>("MatMulInteger", {.since = 10, .types = kByteTypes}),
    OpClass<QLinearMatMul>("QLinearMatMul", {.since = 10, .types = kQLinearTypes}),
};

}  // namespace

TENON_OP_FAMILY(QuantizedMatMul, kRows);

}  // namespace tenon
