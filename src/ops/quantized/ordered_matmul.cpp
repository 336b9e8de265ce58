// QOrderedMatMul of com.microsoft: a product of int8 matrices in orders of cuBLASLt.
#include <optional>

#include "base/arithmetic.h"
#include "ops/framework/quantized_int8.h"
#include "ops/framework/stateful_kernel.h"
#include "ops/linear/int8_product.h"
#include "ops/quantized/matrix_order.h"

namespace tenon {
namespace {

enum Input : size_t { kA, kAScale, kB, kBScale, kYScale, kBias, kC, kCScale };

struct OrderedMatMulAttrs {
  int64_t order_a = 1, order_b = 0, order_y = 1;
  static constexpr auto Fields() {
    using A = OrderedMatMulAttrs;
    return std::tuple(Field("order_A", &A::order_a), Field("order_B", &A::order_b),
                      Field("order_Y", &A::order_y));
  }
};

// B is in column order if A is in row order; otherwise it is in tiles, transposed, and A in columns
// of 32.
Status CheckOrders(const OrderedMatMulAttrs& attrs, const ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(const MatrixOrder a, MatrixOrderOf("order_A", attrs.order_a));
  TENON_ASSIGN_OR_RETURN(const MatrixOrder b, MatrixOrderOf("order_B", attrs.order_b));
  const bool in_rows = b == MatrixOrder::kColumns && a == MatrixOrder::kRows;
  const bool in_tiles = b >= MatrixOrder::kColumns4Rows8 && a == MatrixOrder::kColumns32;
  if ((in_rows || in_tiles) && attrs.order_y == attrs.order_a) {
    if (in_rows || !context.HasInput(kBias)) return OkStatus();
    return InvalidArgument("input 5: expected no bias with order_B = {}", attrs.order_b);
  }
  return InvalidArgument("expected orders 1, 0, 1 or 2, 3 or 4, 2 of A, B and Y, got {}, {}, {}",
                         attrs.order_a, attrs.order_b, attrs.order_y);
}

Status CheckAddend(const ShapeContext& context, const SymbolicShape& y) {
  if (context.HasInput(kC) != context.HasInput(kCScale)) {
    return InvalidArgument("C and scale_C are given together or not at all");
  }
  if (!context.HasInput(kC)) return OkStatus();
  const Result<SymbolicShape> c = context.Input(kC);
  if (!c) return IsUnknownShape(c.error()) ? OkStatus() : c.error();
  bool fits = c->rank() >= 2 && c->rank() <= y.rank();
  for (size_t back = 1; fits && back <= c->rank(); ++back) {
    const Dim &dim = (*c)[c->rank() - back], &wanted = y[y.rank() - back];
    fits = !dim.is_number() || !wanted.is_number() || dim == wanted || (back > 2 && dim == Dim(1));
  }
  // One matrix, or as many as Y has.
  const Dim batch = c->Product(0, fits ? c->rank() - 2 : 0), all = y.Product(0, y.rank() - 2);
  fits = fits && (!batch.is_number() || !all.is_number() || batch == Dim(1) || batch == all);
  if (fits) return OkStatus();
  return InvalidArgument("input 6: expected {}, or one matrix of it, got {}", y, *c);
}

[[gnu::cold]] Status InferOrderedMatMul(const OrderedMatMulAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckOrders(attrs, context));
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {kAScale, kYScale, kCScale}));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(kA));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(kB));
  if (a.rank() < 2 || b.rank() < 2) {
    return InvalidArgument("expected matrices, got {} and {}", a, b);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, InferProduct(a, {}, b, {}));
  TENON_RETURN_IF_ERROR(CheckMatrixOrder(static_cast<MatrixOrder>(attrs.order_a), a, kA));
  const SymbolicShape transposed = {b[b.rank() - 1], b[b.rank() - 2]};
  const bool in_tiles = attrs.order_b != static_cast<int64_t>(MatrixOrder::kColumns);
  TENON_RETURN_IF_ERROR(
      CheckMatrixOrder(static_cast<MatrixOrder>(attrs.order_b), in_tiles ? transposed : b, kB));
  TENON_RETURN_IF_ERROR(CheckMatrixOrder(static_cast<MatrixOrder>(attrs.order_y), y, kA));
  const SymbolicShape columns = {b[b.rank() - 1]};
  TENON_RETURN_IF_ERROR(CheckLineValues(context, kBScale, columns, columns[0]));
  if (context.HasInput(kBias)) {
    const Result<SymbolicShape> bias = context.InputOfRank(kBias, 1);
    if (!bias && !IsUnknownShape(bias.error())) return bias.error();
    if (bias && (*bias)[0].is_number() && columns[0].is_number() && !((*bias)[0] == columns[0])) {
      return InvalidArgument("input 5: expected [{}], got {}", columns[0], *bias);
    }
  }
  TENON_RETURN_IF_ERROR(CheckAddend(context, y));
  return context.SetOutput(0, std::move(y));
}

// Copies the matrices of `x`, which are in `order`, row by row.
void CopyToRows(const Tensor& x, const OrderedSizes& sizes, MatrixOrder order, ThreadPool& threads,
                int8_t* into) {
  const auto* from = static_cast<const int8_t*>(x.raw());
  threads.ParallelFor(sizes.count * sizes.rows, 64, [&](size_t begin, size_t end) {
    for (size_t i = begin; i < end; ++i) {
      const size_t matrix = i / sizes.rows * sizes.matrix_size(), row = i % sizes.rows;
      for (size_t column = 0; column < sizes.columns; ++column) {
        into[i * sizes.columns + column] = from[matrix + OrderedOffset(order, sizes, row, column)];
      }
    }
  });
}

class OrderedMatMul final : public StatefulKernel<InferOrderedMatMul> {
 public:
  Status Prepare(KernelInfo& info) {
    TENON_RETURN_IF_ERROR(Bind(info));
    return product_.Prepare(info, kNoInput, {}, {.transposed = true});
  }

  Status Run(KernelContext& context) const override {
    Tensor& y = context.Output(0);
    if (y.size() == 0) return OkStatus();
    const Tensor &a = context.Input(kA), &b = context.Input(kB);
    // B' by rows: in place, if B is in column order.
    Shape turned = b.shape();
    std::swap(turned[turned.rank() - 1], turned[turned.rank() - 2]);
    const size_t a_bytes = attrs_.order_a == kRowOrder ? 0 : RoundUp<size_t>(SizeOf(a), 64);
    const size_t b_bytes = attrs_.order_b == kColumnOrder ? 0 : RoundUp<size_t>(SizeOf(b), 64);
    const size_t y_bytes = RoundUp<size_t>(SizeOf(y) * sizeof(float), 64);
    Tensor a_rows = Tensor::View(DataType::kInt8, a.shape(), const_cast<void*>(a.raw()));
    Tensor b_rows = Tensor::View(DataType::kInt8, turned, const_cast<void*>(b.raw()));
    Int8ProductCall call = {.a = &a_rows,
                            .b = &b_rows,
                            .a_scale = &context.Input(kAScale),
                            .b_scale = &context.Input(kBScale),
                            .type = kernels::Int8Output::kFloat};
    if (context.HasInput(kBias)) call.float_bias = context.Input(kBias).data<float>();
    const auto bytes =
        CheckedAdd(a_bytes + b_bytes + y_bytes, product_.ScratchBytes(context, call));
    auto* memory = static_cast<std::byte*>(context.Scratch(bytes.value_or(SIZE_MAX)));
    if (memory == nullptr) return RuntimeException("out of memory for a product of {}", y.shape());
    if (a_bytes > 0) {
      auto* into = reinterpret_cast<int8_t*>(memory);
      CopyToRows(a, OrderedSizesOf(a.shape()), static_cast<MatrixOrder>(attrs_.order_a),
                 context.threads(), into);
      a_rows = Tensor::View(DataType::kInt8, a.shape(), into);
    }
    if (b_bytes > 0) {
      auto* into = reinterpret_cast<int8_t*>(memory + a_bytes);
      CopyToRows(b, OrderedSizesOf(turned), static_cast<MatrixOrder>(attrs_.order_b),
                 context.threads(), into);
      b_rows = Tensor::View(DataType::kInt8, turned, into);
    }
    auto* sums = reinterpret_cast<float*>(memory + a_bytes + b_bytes);
    call.y = sums;
    TENON_RETURN_IF_ERROR(product_.RunIn(memory + a_bytes + b_bytes + y_bytes, context, call));
    Quantize(context, sums);
    return OkStatus();
  }

 private:
  static constexpr size_t kNoInput = 99;
  static constexpr auto kRowOrder = static_cast<int64_t>(MatrixOrder::kRows);
  static constexpr auto kColumnOrder = static_cast<int64_t>(MatrixOrder::kColumns);

  static size_t SizeOf(const Tensor& x) { return static_cast<size_t>(x.size()); }

  // Y from the sums, row by row, and C.
  void Quantize(KernelContext& context, const float* sums) const {
    Tensor& y = context.Output(0);
    const OrderedSizes sizes = OrderedSizesOf(y.shape());
    const auto order = static_cast<MatrixOrder>(attrs_.order_y);
    const Int8Quantization of_y = {true, *context.Input(kYScale).data<float>(), 0};
    const Tensor* c = context.HasInput(kC) ? &context.Input(kC) : nullptr;
    const float c_scale = c ? *context.Input(kCScale).data<float>() : 0;
    const bool one_c = c && SizeOf(*c) == sizes.matrix_size();
    auto* into = static_cast<uint8_t*>(y.raw());
    context.threads().ParallelFor(sizes.count * sizes.rows, 64, [&](size_t begin, size_t end) {
      for (size_t i = begin; i < end; ++i) {
        const size_t matrix = i / sizes.rows * sizes.matrix_size(), row = i % sizes.rows;
        for (size_t column = 0; column < sizes.columns; ++column) {
          const size_t at = OrderedOffset(order, sizes, row, column);
          float value = sums[i * sizes.columns + column];
          if (c) {
            const auto* addends = static_cast<const int8_t*>(c->raw());
            value += c_scale * static_cast<float>(addends[(one_c ? 0 : matrix) + at]);
          }
          into[matrix + at] = of_y.ByteOf(value);
        }
      }
    });
  }

  Int8Product product_;
};

constexpr OpRow kRows[] = {
    OpClass<OrderedMatMul>("QOrderedMatMul",
                           {.domain = "com.microsoft", .types = {DataType::kInt8}}),
};

}  // namespace

TENON_OP_FAMILY(OrderedMatMul, kRows);

}  // namespace tenon
