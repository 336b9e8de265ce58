// QuantizeWithOrder and DequantizeWithOrder of com.microsoft.
#include "ops/quantized/matrix_order.h"

#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/op_row.h"
#include "ops/framework/quantized_int8.h"

namespace tenon {

Result<MatrixOrder> MatrixOrderOf(std::string_view attribute, int64_t value) {
  if (value >= 0 && value <= static_cast<int64_t>(MatrixOrder::kColumns32Rows32)) {
    return static_cast<MatrixOrder>(value);
  }
  return InvalidArgument("attribute '{}': expected an order in [0, 4], got {}", attribute, value);
}

OrderedSizes OrderedSizesOf(const Shape& shape) {
  OrderedSizes sizes;
  const size_t rank = shape.rank();
  if (rank > 0) sizes.columns = static_cast<size_t>(shape[rank - 1]);
  if (rank > 1) sizes.rows = static_cast<size_t>(shape[rank - 2]);
  if (rank > 2) sizes.count = static_cast<size_t>(shape.Product(0, rank - 2));
  return sizes;
}

Status CheckMatrixOrder(MatrixOrder order, const SymbolicShape& shape, size_t input) {
  const int64_t columns = order >= MatrixOrder::kColumns32 ? 32 : 1;
  const int64_t rows = order == MatrixOrder::kColumns4Rows8     ? 8
                       : order == MatrixOrder::kColumns32Rows32 ? 32
                                                                : 1;
  const auto fits = [&](size_t back, int64_t tile) {
    const Dim dim = shape.rank() >= back ? shape[shape.rank() - back] : Dim(1);
    return !dim.is_number() || dim.value() % tile == 0;
  };
  if (fits(1, columns) && fits(2, rows)) return OkStatus();
  return InvalidArgument("input {}: expected multiples of {} rows and {} columns, got {}", input,
                         rows, columns, shape);
}

namespace {

struct OrderAttrs {
  int64_t from = 1, to = 1;
  static constexpr auto Fields() {
    return std::tuple(Field("order_input", &OrderAttrs::from),
                      Field("order_output", &OrderAttrs::to));
  }
};

struct DequantizeAttrs : OrderAttrs {
  DataType type = DataType::kFloat;
  static constexpr auto Fields() {
    return std::tuple_cat(OrderAttrs::Fields(), std::tuple(Field("to", &DequantizeAttrs::type)));
  }
};

Result<SymbolicShape> InferReordered(const OrderAttrs& attrs, const ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const MatrixOrder from, MatrixOrderOf("order_input", attrs.from));
  TENON_ASSIGN_OR_RETURN(const MatrixOrder to, MatrixOrderOf("order_output", attrs.to));
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {1}));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(CheckMatrixOrder(from, x, 0));
  TENON_RETURN_IF_ERROR(CheckMatrixOrder(to, x, 0));
  return x;
}

Status InferQuantize(const OrderAttrs& attrs, ShapeContext& context) {
  // A scale of X's type is widened with it.
  if (context.ElementType(1) != context.ElementType(0)) {
    TENON_RETURN_IF_ERROR(CheckElementType(context, 1, DataType::kFloat));
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferReordered(attrs, context));
  return context.SetOutput(0, std::move(y));
}

Status InferDequantize(const DequantizeAttrs& attrs, ShapeContext& context) {
  if (attrs.type != DataType::kFloat && attrs.type != DataType::kFloat16) {
    return InvalidArgument("attribute 'to': expected float or float16, got {}",
                           DataTypeName(attrs.type));
  }
  TENON_RETURN_IF_ERROR(CheckElementType(context, 1, DataType::kFloat));
  TENON_RETURN_IF_ERROR(context.SetOutputType(0, ValueType::Tensor(attrs.type)));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferReordered(attrs, context));
  return context.SetOutput(0, std::move(y), attrs.type);
}

// y = convert(x), from one order into another.
template <class From, class To, class F>
Status Reorder(const OrderAttrs& attrs, KernelContext& context, F&& convert) {
  const Tensor& x = context.Input(0);
  const OrderedSizes sizes = OrderedSizesOf(x.shape());
  const auto from = static_cast<MatrixOrder>(attrs.from), to = static_cast<MatrixOrder>(attrs.to);
  const auto* in = static_cast<const From*>(x.raw());
  auto* out = static_cast<To*>(context.Output(0).raw());
  const size_t grain = CopyGrain(sizes.columns * sizeof(float));
  context.threads().ParallelFor(sizes.count * sizes.rows, grain, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t matrix = i / sizes.rows * sizes.matrix_size(), row = i % sizes.rows;
      for (size_t column = 0; column < sizes.columns; ++column) {
        out[matrix + OrderedOffset(to, sizes, row, column)] =
            convert(in[matrix + OrderedOffset(from, sizes, row, column)]);
      }
    }
  });
  return OkStatus();
}

Status RunQuantize(const OrderAttrs& attrs, KernelContext& context) {
  const Int8Quantization of_y = {true, *context.Input(1).data<float>(), 0};
  if (context.Input(0).type() == DataType::kFloat16) {
    return Reorder<Float16, uint8_t>(attrs, context,
                                     [&](Float16 x) { return of_y.ByteOf(Widen(x)); });
  }
  return Reorder<float, uint8_t>(attrs, context, [&](float x) { return of_y.ByteOf(x); });
}

Status RunDequantize(const DequantizeAttrs& attrs, KernelContext& context) {
  const Int8Quantization of_x = {true, *context.Input(1).data<float>(), 0};
  if (attrs.type == DataType::kFloat16) {
    return Reorder<uint8_t, Float16>(
        attrs, context, [&](uint8_t x) { return static_cast<Float16>(of_x.ValueOf(x)); });
  }
  return Reorder<uint8_t, float>(attrs, context, [&](uint8_t x) { return of_x.ValueOf(x); });
}

constexpr OpRow kOrderRows[] = {
    Op<InferQuantize, RunQuantize>(
        "QuantizeWithOrder",
        {.domain = "com.microsoft", .types = {DataType::kFloat, DataType::kFloat16}}),
    Op<InferDequantize, RunDequantize>("DequantizeWithOrder",
                                       {.domain = "com.microsoft", .types = {DataType::kInt8}}),
};

}  // namespace

TENON_OP_FAMILY(MatrixOrder, kOrderRows);

}  // namespace tenon
