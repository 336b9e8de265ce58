// Operators that work on each element of quantized tensors: com.microsoft's QLinearAdd, QLinearMul,
// QLinearLeakyRelu, QLinearSigmoid, QLinearSoftmax, QLinearConcat, QLinearWhere, and our own
// QLinearActivation, QLinearTable and, with the scale as it is, QLinearSoftmax.
#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "base/arithmetic.h"
#include "kernels/elementwise/int8_table.h"
#include "kernels/elementwise/quantized_binary.h"
#include "kernels/elementwise/quantized_softmax.h"
#include "ops/framework/element.h"
#include "ops/framework/expected_shape.h"
#include "ops/framework/fused_activation.h"
#include "ops/framework/op_row.h"
#include "ops/framework/quantized_int8.h"
#include "ops/linear/int8_product.h"

namespace tenon {
namespace {

constexpr std::string_view kMicrosoft = "com.microsoft";

// A function of one int8 or uint8 element: the output for every input byte.
using Table = std::array<uint8_t, 256>;

// f of the numbers that the bytes represent.
template <class F>
Table TableOf(const Int8Quantization& from, const Int8Quantization& to, F&& f) {
  Table table;
  for (int byte = 0; byte < 256; ++byte) {
    table[static_cast<size_t>(byte)] = to.ByteOf(f(from.ValueOf(static_cast<uint8_t>(byte))));
  }
  return table;
}

// Elements that make a task of reasonable size.
constexpr size_t kGrain = 32768;

void MapBytes(const Table& table, const Tensor& x, Tensor& y, ThreadPool& threads) {
  const auto* from = static_cast<const uint8_t*>(x.raw());
  auto* into = static_cast<uint8_t*>(y.raw());
  threads.ParallelFor(static_cast<size_t>(x.size()), kGrain, [&](size_t begin, size_t end) {
    kernels::LookUpInt8(table.data(), from + begin, end - begin, into + begin);
  });
}

// --- One input ---

struct UnaryAttrs {
  float alpha = InfoOf(UnaryOp::kLeakyRelu).parameters[0].fallback;
  static constexpr auto Fields() { return std::tuple(Field("alpha", &UnaryAttrs::alpha)); }
};

Status InferUnary(const UnaryAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {1, 2, 3, 4}));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x));
}

template <class F>
Status RunUnary(KernelContext& context, F&& f) {
  const Tensor& x = context.Input(0);
  const Table table = TableOf(QuantizationIn(context, 1, 2, x.type()),
                              QuantizationIn(context, 3, 4, context.Output(0).type()), f);
  MapBytes(table, x, context.Output(0), context.threads());
  return OkStatus();
}

auto Function(const kernels::ActivationSpec& spec) {
  return [spec](float x) { return static_cast<float>(Activated(spec, x)); };
}

Status RunLeakyRelu(const UnaryAttrs& attrs, KernelContext& context) {
  return RunUnary(context, Function({UnaryOp::kLeakyRelu, attrs.alpha}));
}

// QLinearActivation of com.tenon: an activation of a quantized tensor; no activation quantizes
// anew.
struct QLinearActivationAttrs {
  std::string activation;
  std::vector<float> parameters;
  static constexpr auto Fields() {
    using A = QLinearActivationAttrs;
    return std::tuple(Field("activation", &A::activation),
                      Field("activation_params", &A::parameters));
  }
};

Status InferActivation(const QLinearActivationAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {1, 2, 3, 4}));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  return context.SetOutput(0, std::move(x), context.ElementType(4));
}

Status RunActivation(const QLinearActivationAttrs& attrs, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(const kernels::ActivationSpec spec,
                         FusedActivation(attrs.activation, attrs.parameters));
  return RunUnary(context, Function(spec));
}

Status RunSigmoid(const UnaryAttrs&, KernelContext& context) {
  return RunUnary(context, Function({UnaryOp::kSigmoid}));
}

// QLinearTable of com.tenon: see fuse_tables.h.
Status InferTable(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape table, context.InputOfRank(1, 1));
  if (!(table[0] == Dim(256))) return InvalidArgument("input 1: expected [256], got {}", table);
  return context.SetOutput(0, std::move(x), context.ElementType(1));
}

Status RunTable(const NoAttrs&, KernelContext& context) {
  const Tensor& stored = context.Input(1);
  Table table;
  std::copy_n(static_cast<const uint8_t*>(stored.raw()), table.size(), table.begin());
  MapBytes(table, context.Input(0), context.Output(0), context.threads());
  return OkStatus();
}

// --- Two inputs that broadcast ---

Status InferBinary(const NoAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {1, 2, 4, 5, 6, 7}));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape b, context.Input(3));
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, BroadcastShapes(a, b));
  return context.SetOutput(0, std::move(y));
}

// The position of an operand's elements for a row of the output, and their distance.
class BroadcastRows {
 public:
  BroadcastRows(const Shape& operand, const Shape& output) : output_(output), strides_(output) {
    int64_t stride = 1;
    for (size_t back = 1; back <= output.rank(); ++back) {
      const int64_t dim = back <= operand.rank() ? operand[operand.rank() - back] : 1;
      strides_[output.rank() - back] = dim == 1 ? 0 : stride;
      stride *= dim;
    }
  }

  int64_t stride(size_t axis) const { return strides_[axis]; }
  size_t step() const { return strides_.rank() == 0 ? 0 : static_cast<size_t>(strides_.back()); }
  size_t OffsetOf(size_t row) const {
    int64_t offset = 0, rest = static_cast<int64_t>(row);
    for (size_t axis = output_.rank() < 1 ? 0 : output_.rank() - 1; axis-- > 0;) {
      offset += rest % output_[axis] * strides_[axis];
      rest /= output_[axis];
    }
    return static_cast<size_t>(offset);
  }

 private:
  const Shape& output_;
  Shape strides_;
};

kernels::QuantizedType TypeOf(const Int8Quantization& q) {
  return q.is_signed ? kernels::QuantizedType::kInt8 : kernels::QuantizedType::kUint8;
}

// Rows of the output, one after the other, in which each operand is one element, goes through its
// memory, or repeats its last row.
class RowBlock {
 public:
  enum class Kind { kOne, kNext, kRepeated };

  RowBlock(const BroadcastRows& a, const BroadcastRows& b, const Shape& output) {
    const size_t rank = output.rank();
    row_size_ = rank == 0 ? 1 : static_cast<size_t>(output.back());
    for (size_t i = 0; i < 2; ++i) {
      const BroadcastRows& rows = i == 0 ? a : b;
      kinds_[i] = rows.step() == 0 ? Kind::kOne : Kind::kNext;
    }
    bool is_first = true;
    for (size_t axis = rank < 2 ? 0 : rank - 1; axis-- > 0;) {
      if (output[axis] == 1) continue;
      const std::optional<Kind> of_a = KindAlong(a, axis), of_b = KindAlong(b, axis);
      if (!of_a || !of_b || (!is_first && (*of_a != kinds_[0] || *of_b != kinds_[1]))) break;
      kinds_ = {*of_a, *of_b};
      is_first = false;
      rows_ *= static_cast<size_t>(output[axis]);
    }
  }

  size_t rows() const { return rows_; }
  size_t row_size() const { return row_size_; }
  Kind kind(size_t operand) const { return kinds_[operand]; }

 private:
  // How the operand moves along an axis on which it has gone through `rows_` rows; nothing if in
  // neither way.
  std::optional<Kind> KindAlong(const BroadcastRows& operand, size_t axis) const {
    const auto stride = static_cast<size_t>(operand.stride(axis));
    if (stride == 0) return operand.step() == 0 ? Kind::kOne : Kind::kRepeated;
    if (operand.step() == 1 && stride == rows_ * row_size_) return Kind::kNext;
    return std::nullopt;
  }

  size_t row_size_ = 1, rows_ = 1;
  std::array<Kind, 2> kinds_;
};

// The shape without its last axes, as far as there are so many.
Shape WithoutLast(const Shape& shape, size_t count) {
  return Shape(shape.dims().first(shape.rank() - std::min(count, shape.rank())));
}

Status RunBinary(KernelContext& context, kernels::QuantizedBinaryOp op) {
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  // Rows have more than one element if there are more.
  size_t ones = 0;
  while (ones < y.rank() && y.shape()[y.rank() - 1 - ones] == 1) ++ones;
  const Shape output = WithoutLast(y.shape(), ones);
  const Int8Quantization of_y = QuantizationIn(context, 6, 7, y.type());
  const Int8Quantization of_operands[] = {QuantizationIn(context, 1, 2, context.Input(0).type()),
                                          QuantizationIn(context, 4, 5, context.Input(3).type())};
  const Tensor* const operands[] = {&context.Input(0), &context.Input(3)};
  const BroadcastRows rows_of[] = {{WithoutLast(operands[0]->shape(), ones), output},
                                   {WithoutLast(operands[1]->shape(), ones), output}};
  const RowBlock block(rows_of[0], rows_of[1], output);
  const size_t n = block.row_size(), rows = static_cast<size_t>(y.size()) / n;
  // A row that repeats is copied, so that one call computes many rows.
  constexpr size_t kCopiedElements = 2048;
  const size_t copies = std::min(block.rows(), kCopiedElements / n + 1);
  const size_t task_rows = std::min(block.rows(), kGrain / n + 1);
  const size_t block_tasks = CeilDiv(block.rows(), task_rows);
  const size_t copied_bytes = RoundUp<size_t>(copies * n, 64);
  return context.ForEachTask(
      rows / block.rows() * block_tasks, 2 * copied_bytes, [&](size_t task, std::byte* scratch) {
        const size_t first = task / block_tasks * block.rows();
        const size_t begin = task % block_tasks * task_rows;
        const size_t end = std::min(begin + task_rows, block.rows());
        const uint8_t* from[2];
        size_t most_rows = end - begin;  // of a call
        for (size_t i = 0; i < 2; ++i) {
          from[i] = static_cast<const uint8_t*>(operands[i]->raw()) + rows_of[i].OffsetOf(first);
          if (block.kind(i) == RowBlock::Kind::kNext) from[i] += begin * n;
          if (block.kind(i) != RowBlock::Kind::kRepeated) continue;
          auto* copied = reinterpret_cast<uint8_t*>(scratch + i * copied_bytes);
          for (size_t copy = 0; copy < copies; ++copy) std::copy_n(from[i], n, copied + copy * n);
          from[i] = copied;
          most_rows = std::min(most_rows, copies);
        }
        auto* into = static_cast<uint8_t*>(y.raw()) + (first + begin) * n;
        for (size_t row = begin; row < end; row += most_rows) {
          const size_t count = std::min(most_rows, end - row) * n;
          kernels::QuantizedOperand of[2];
          for (size_t i = 0; i < 2; ++i) {
            of[i] = {from[i], block.kind(i) == RowBlock::Kind::kOne, of_operands[i].scale,
                     of_operands[i].zero_point};
            if (block.kind(i) == RowBlock::Kind::kNext) from[i] += count;
          }
          kernels::CombineQuantized(op, of[0], of[1], count, of_y.scale, of_y.zero_point,
                                    TypeOf(of_y), into);
          into += count;
        }
      });
}

Status RunAdd(const NoAttrs&, KernelContext& context) {
  return RunBinary(context, kernels::QuantizedBinaryOp::kAdd);
}
Status RunMul(const NoAttrs&, KernelContext& context) {
  return RunBinary(context, kernels::QuantizedBinaryOp::kMul);
}

// --- QLinearWhere ---

enum WhereInput : size_t { kCondition, kX, kXScale, kXZero, kY, kYScale, kYZero, kZScale, kZZero };

Status InferWhere(const NoAttrs&, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(
      CheckOneElementEach(context, {kXScale, kXZero, kYScale, kYZero, kZScale, kZZero}));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape condition, context.Input(kCondition));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(kX));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape y, context.Input(kY));
  TENON_ASSIGN_OR_RETURN(const SymbolicShape both, BroadcastShapes(x, y));
  TENON_ASSIGN_OR_RETURN(SymbolicShape z, BroadcastShapes(condition, both));
  return context.SetOutput(0, std::move(z));
}

Status RunWhere(const NoAttrs&, KernelContext& context) {
  const Tensor& x = context.Input(kX);
  const Tensor& y = context.Input(kY);
  Tensor& z = context.Output(0);
  if (z.size() == 0) return OkStatus();
  const Int8Quantization of_z = QuantizationIn(context, kZScale, kZZero, z.type());
  const auto same = [](float value) { return value; };
  const Table of_x = TableOf(QuantizationIn(context, kXScale, kXZero, x.type()), of_z, same);
  const Table of_y = TableOf(QuantizationIn(context, kYScale, kYZero, y.type()), of_z, same);
  const BroadcastRows conditions(context.Input(kCondition).shape(), z.shape());
  const BroadcastRows x_rows(x.shape(), z.shape()), y_rows(y.shape(), z.shape());
  const size_t n = z.rank() == 0 ? 1 : static_cast<size_t>(z.shape().back());
  const size_t rows = static_cast<size_t>(z.size()) / n;
  context.threads().ParallelFor(rows, kGrain / n + 1, [&](size_t begin, size_t end) {
    for (size_t row = begin; row < end; ++row) {
      const bool* condition = context.Input(kCondition).data<bool>() + conditions.OffsetOf(row);
      const uint8_t* from_x = static_cast<const uint8_t*>(x.raw()) + x_rows.OffsetOf(row);
      const uint8_t* from_y = static_cast<const uint8_t*>(y.raw()) + y_rows.OffsetOf(row);
      uint8_t* into = static_cast<uint8_t*>(z.raw()) + row * n;
      for (size_t i = 0; i < n; ++i) {
        into[i] = condition[i * conditions.step()] ? of_x[from_x[i * x_rows.step()]]
                                                   : of_y[from_y[i * y_rows.step()]];
      }
    }
  });
  return OkStatus();
}

// --- QLinearConcat ---

struct ConcatAttrs {
  int64_t axis = 0;
  static constexpr auto Fields() { return std::tuple(Field("axis", &ConcatAttrs::axis)); }
};

// Inputs 2, 5, ... are the tensors to join, each followed by its scale and zero point.
Status InferConcat(const ConcatAttrs& attrs, ShapeContext& context) {
  const size_t count = context.input_count();
  if (count < 5 || (count - 2) % 3 != 0) {
    return InvalidArgument("expected inputs in threes after the first two, got {}", count);
  }
  TENON_ASSIGN_OR_RETURN(SymbolicShape y, context.Input(2));
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, y.rank()));
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {0, 1}));
  TENON_RETURN_IF_ERROR(CheckElementType(context, 0, DataType::kFloat));
  for (size_t i = 2; i < count; i += 3) {
    TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {i + 1, i + 2}));
    TENON_RETURN_IF_ERROR(CheckElementType(context, i + 1, DataType::kFloat));
    if (!context.HasInput(i) || !context.HasInput(i + 1) || !context.HasInput(i + 2)) {
      return InvalidArgument("input {}: expected a tensor with a scale and a zero point", i);
    }
    const DataType type = context.ElementType(i), zero_type = context.ElementType(i + 2);
    if (type != DataType::kUndefined && !kByteTypes.Contains(type)) {
      return InvalidArgument("input {}: expected bytes, got {}", i, DataTypeName(type));
    }
    // One type for all, as in onnxruntime.
    for (const DataType other : {zero_type, context.ElementType(1)}) {
      if (type == other || type == DataType::kUndefined || other == DataType::kUndefined) continue;
      return InvalidArgument("input {}: expected {} like all tensors and zero points, got {}", i,
                             DataTypeName(other), DataTypeName(type));
    }
    if (i == 2) continue;
    TENON_ASSIGN_OR_RETURN(const SymbolicShape x, context.Input(i));
    bool fits = x.rank() == y.rank();
    for (size_t k = 0; fits && k < x.rank(); ++k) {
      fits = k == axis || !x[k].is_number() || !y[k].is_number() || x[k] == y[k];
    }
    if (!fits) return InvalidArgument("input {}: {} cannot be joined to {}", i, x, y);
    y[axis] = y[axis] + x[axis];
  }
  const DataType type = context.ElementType(1);
  return type == DataType::kUndefined ? context.SetOutput(0, std::move(y))
                                      : context.SetOutput(0, std::move(y), type);
}

Status RunConcat(const ConcatAttrs& attrs, KernelContext& context) {
  Tensor& y = context.Output(0);
  if (y.size() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, y.rank()));
  const Int8Quantization of_y = QuantizationIn(context, 0, 1, y.type());
  const auto outer = static_cast<size_t>(y.shape().Product(0, axis));
  const size_t y_stride = static_cast<size_t>(y.size()) / outer;
  auto* into = static_cast<uint8_t*>(y.raw());
  for (size_t i = 2; i < context.input_count(); i += 3) {
    const Tensor& x = context.Input(i);
    const Table table = TableOf(QuantizationIn(context, i + 1, i + 2, x.type()), of_y,
                                [](float value) { return value; });
    const size_t block = static_cast<size_t>(x.size()) / outer;
    const auto* from = static_cast<const uint8_t*>(x.raw());
    context.threads().ParallelFor(outer, kGrain / (block + 1) + 1, [&](size_t begin, size_t end) {
      kernels::LookUpInt8Rows(table.data(), from + begin * block, block, end - begin, block,
                              into + begin * y_stride, y_stride);
    });
    into += block;
  }
  return OkStatus();
}

// --- QLinearSoftmax ---

// `opset` is that of the Softmax meant: below 13 all axes from `axis` on are one.
struct SoftmaxAttrs {
  int64_t axis = -1;
  int64_t opset = 13;
  static constexpr auto Fields() {
    return std::tuple(Field("axis", &SoftmaxAttrs::axis), Field("opset", &SoftmaxAttrs::opset));
  }
};

Status InferSoftmax(const SoftmaxAttrs& attrs, ShapeContext& context) {
  TENON_RETURN_IF_ERROR(CheckOneElementEach(context, {1, 2, 3, 4}));
  TENON_ASSIGN_OR_RETURN(SymbolicShape x, context.Input(0));
  TENON_RETURN_IF_ERROR(NormalizeAxis(attrs.axis, x.rank()));
  return context.SetOutput(0, std::move(x));
}

// `whole_steps`: y_scale becomes the inverse of an integer, rounded down, as in onnxruntime's
// QLinearSoftmax.
Status RunSoftmaxWith(bool whole_steps, const SoftmaxAttrs& attrs, KernelContext& context) {
  const Tensor& x = context.Input(0);
  Tensor& y = context.Output(0);
  if (x.size() == 0) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(attrs.axis, x.rank()));
  const size_t end_axis = attrs.opset < 13 ? x.rank() : axis + 1;
  const auto n = static_cast<size_t>(x.shape().Product(axis, end_axis));
  const auto inner = static_cast<size_t>(x.shape().Product(end_axis, x.rank()));
  const Int8Quantization of_x = QuantizationIn(context, 1, 2, x.type());
  Int8Quantization of_y = QuantizationIn(context, 3, 4, y.type());
  if (whole_steps) of_y.scale = 1 / std::floor(1 / of_y.scale);
  const kernels::QuantizedSoftmax softmax(of_x.scale, TypeOf(of_x), of_y.scale, of_y.zero_point,
                                          TypeOf(of_y));
  const auto* from = static_cast<const uint8_t*>(x.raw());
  auto* into = static_cast<uint8_t*>(y.raw());
  const size_t outer = static_cast<size_t>(x.size()) / (n * inner);
  if (inner == 1) {
    context.threads().ParallelFor(outer, kGrain / n + 1, [&](size_t begin, size_t end) {
      for (size_t at = begin * n; at < end * n; at += n) {
        kernels::SoftmaxQuantizedLine(softmax, from + at, n, into + at);
      }
    });
    return OkStatus();
  }
  const size_t task_columns = std::min(inner, RoundUp<size_t>(kGrain / n + 1, 64));
  const size_t tasks = CeilDiv(inner, task_columns);
  context.threads().ParallelFor(outer * tasks, 1, [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      const size_t first = task % tasks * task_columns;
      const size_t at = task / tasks * n * inner + first;
      kernels::SoftmaxQuantizedColumns(softmax, from + at, n, inner,
                                       std::min(task_columns, inner - first), into + at);
    }
  });
  return OkStatus();
}

Status RunSoftmax(const SoftmaxAttrs& attrs, KernelContext& context) {
  return RunSoftmaxWith(false, attrs, context);
}

Status RunSoftmaxInWholeSteps(const SoftmaxAttrs& attrs, KernelContext& context) {
  return RunSoftmaxWith(true, attrs, context);
}

constexpr OpOptions kBytes = {.domain = kMicrosoft, .types = kByteTypes};

constexpr OpRow kRows[] = {
    Op<InferBinary, RunAdd>("QLinearAdd", kBytes),
    Op<InferBinary, RunMul>("QLinearMul", kBytes),
    Op<InferUnary, RunLeakyRelu>("QLinearLeakyRelu", kBytes),
    Op<InferUnary, RunSigmoid>("QLinearSigmoid", kBytes),
    Op<InferActivation, RunActivation>("QLinearActivation",
                                       {.domain = "com.tenon", .types = kByteTypes}),
    Op<InferTable, RunTable>("QLinearTable", {.domain = "com.tenon", .types = kByteTypes}),
    Op<InferSoftmax, RunSoftmaxInWholeSteps>("QLinearSoftmax", kBytes),
    Op<InferSoftmax, RunSoftmax>("QLinearSoftmax", {.domain = "com.tenon", .types = kByteTypes}),
    Op<InferConcat, RunConcat>("QLinearConcat",
                               {.domain = kMicrosoft, .types = kByteTypes, .typed_input = 2}),
    Op<InferWhere, RunWhere>("QLinearWhere", {.domain = kMicrosoft, .types = {DataType::kBool}}),
};

}  // namespace

TENON_OP_FAMILY(QLinearElementwise, kRows);

}  // namespace tenon
