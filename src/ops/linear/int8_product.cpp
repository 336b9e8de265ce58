#include "ops/linear/int8_product.h"

#include <algorithm>

#include "base/arithmetic.h"
#include "ops/framework/element_conversion.h"
#include "runtime/kernel_info.h"

namespace tenon {
namespace {

using kernels::Int8GemmArgs;
using kernels::Int8Matrix;

// Values for the lines of an operand, in scratch memory.
template <class T>
struct LineValues {
  T* data = nullptr;
  bool per_line = false;
  size_t matrix_stride = 0;
};

size_t ElementsOf(const Tensor* tensor) { return tensor ? static_cast<size_t>(tensor->size()) : 0; }

// How `tensor` applies to the lines of the matrices, each of which has `lines`.
template <class T>
LineValues<T> SpreadOver(const Tensor* tensor, size_t lines, size_t matrices) {
  LineValues<T> values;
  const size_t count = ElementsOf(tensor);
  values.per_line = count > 1;
  values.matrix_stride = count == lines * matrices && matrices > 1 && count > 1 ? lines : 0;
  return values;
}

// Reads `tensor` into memory at *cursor, which is advanced.
template <class T>
void ReadValues(const Tensor* tensor, std::byte** cursor, LineValues<T>* values) {
  if (tensor == nullptr) return;
  values->data = reinterpret_cast<T*>(*cursor);
  const auto n = static_cast<size_t>(tensor->size());
  constexpr size_t kBlock = 64;
  double wide[kBlock];
  for (size_t first = 0; first < n; first += kBlock) {
    const size_t count = std::min(kBlock, n - first);
    LoadElements(*tensor, first, count, wide);
    std::transform(wide, wide + count, values->data + first,
                   [](double value) { return static_cast<T>(value); });
  }
  *cursor += RoundUp<size_t>(n * sizeof(T), 64);
}

size_t ValueBytes(const Tensor* tensor) { return RoundUp<size_t>(ElementsOf(tensor) * 4, 64); }

bool IsOneBelowTheOther(const MatrixStack& a) {
  return a.matrix_stride == a.rows * a.row_stride || a.count() == 1;
}

size_t ElementBytes(kernels::Int8Output type) {
  return type == kernels::Int8Output::kInt32 || type == kernels::Int8Output::kFloat ? 4 : 1;
}

Int8Matrix MatrixOf(const Tensor& tensor, const MatrixStack& stack) {
  return {static_cast<const uint8_t*>(tensor.raw()), tensor.type() == DataType::kInt8,
          stack.row_stride, stack.column_stride};
}

}  // namespace

Status CheckLineValues(const ShapeContext& context, size_t i, const SymbolicShape& operand,
                       const Dim& lines) {
  if (!context.HasInput(i)) return OkStatus();
  const Result<SymbolicShape> values = context.Input(i);
  if (!values) return IsUnknownShape(values.error()) ? OkStatus() : values.error();
  const Dim count = values->NumElements();
  if (!count.is_number() || !lines.is_number() || count == Dim(1) || count == lines) {
    return OkStatus();
  }
  const size_t batch_axes = operand.rank() > 2 ? operand.rank() - 2 : 0;
  const Dim all = operand.Product(0, batch_axes) * lines;
  if (!all.is_number() || count == all) return OkStatus();
  return InvalidArgument(
      "input {}: expected one value, or one for each of {} rows or columns of "
      "{}, got {}",
      i, lines, operand, *values);
}

Status CheckProductValues(const ShapeContext& context, const SymbolicShape& a,
                          const SymbolicShape& b, size_t a_input, size_t b_input) {
  const Dim rows = a.rank() > 1 ? a[a.rank() - 2] : Dim(1);
  const Dim columns = b.rank() > 1 ? b[b.rank() - 1] : Dim(1);
  TENON_RETURN_IF_ERROR(CheckLineValues(context, a_input, a, rows));
  return CheckLineValues(context, b_input, b, columns);
}

// The sizes of a call: the operands as stacks, and the first matrix's arguments.
struct Int8Product::Plan {
  MatrixStack a, b;
  LineValues<int32_t> a_zero, b_zero;
  LineValues<float> a_scale, b_scale;
  Int8GemmArgs args;
};

Int8Product::Plan Int8Product::MakePlan(const Int8ProductCall& call) const {
  Plan plan;
  plan.a = StackOf(call.a->shape(), a_form_, Side::kLeft);
  plan.b = StackOf(call.b->shape(), b_form_, Side::kRight);
  const size_t a_count = plan.a.count();
  const auto repeats = [&](const Tensor* values) {
    return a_count > 1 && ElementsOf(values) > 1 && ElementsOf(values) != plan.a.rows * a_count;
  };
  if (plan.b.count() == 1 && IsOneBelowTheOther(plan.a) && !repeats(call.a_zero) &&
      !repeats(call.a_scale)) {
    plan.a.rows *= a_count;
    plan.a.batch = Shape();
  }
  plan.a_zero = SpreadOver<int32_t>(call.a_zero, plan.a.rows, plan.a.count());
  plan.b_zero = SpreadOver<int32_t>(call.b_zero, plan.b.columns, plan.b.count());
  plan.a_scale = SpreadOver<float>(call.a_scale, plan.a.rows, plan.a.count());
  plan.b_scale = SpreadOver<float>(call.b_scale, plan.b.columns, plan.b.count());
  plan.args.m = plan.a.rows;
  plan.args.n = plan.b.columns;
  plan.args.k = plan.a.columns;
  plan.args.a = MatrixOf(*call.a, plan.a);
  plan.args.b = MatrixOf(*call.b, plan.b);
  plan.args.a_zero_per_row = plan.a_zero.per_line;
  plan.args.b_zero_per_column = plan.b_zero.per_line;
  plan.args.ldc = plan.b.columns;
  plan.args.epilogue.bias_columns = call.bias;
  plan.args.epilogue.float_bias = call.float_bias;
  plan.args.epilogue.zero_point = call.y_zero;
  plan.args.epilogue.type = call.type;
  return plan;
}

Status Int8Product::Prepare(KernelInfo& info, size_t b_input, OperandForm a_form,
                            OperandForm b_form) {
  a_form_ = a_form;
  b_form_ = b_form;
  const Tensor* constant = info.Constant(b_input);
  if (constant == nullptr || !kByteTypes.Contains(constant->type()) || constant->size() == 0 ||
      constant->rank() < 2) {
    return OkStatus();
  }
  const MatrixStack b = StackOf(constant->shape(), b_form, Side::kRight);
  packed_.Keep(*constant,
               Format("byte gemm b {} x {}, strides {} {} {}", b.rows, b.columns, b.row_stride,
                      b.column_stride, b.matrix_stride),
               info.weights());
  info.ReleaseConstant(b_input);
  return OkStatus();
}

// The packed matrices of `b`, or null and the constant that they are made from, or null.
Result<LazyWeights::Source> Int8Product::KeptB(KernelContext& context, size_t rows,
                                               const MatrixStack& b, DataType type) const {
  if (!packed_.is_kept()) return LazyWeights::Source{};
  // A multiple of 64, so it is a whole number of floats.
  const size_t stride = kernels::PackedInt8GemmBSize(b.columns, b.rows);
  const auto bytes = CheckedMul(stride, b.count());
  if (!bytes) return RuntimeException("out of memory for packing {} matrices", b.count());
  const size_t panels = kernels::Int8GemmPanelCount(b.columns);
  const auto pack = [&](const Tensor& constant, float* packed, size_t first, size_t last) {
    const auto* data = static_cast<const uint8_t*>(constant.raw());
    context.threads().ParallelFor(last - first, 1, [&](size_t begin, size_t end) {
      for (size_t part = first + begin; part < first + end; ++part) {
        const size_t i = part / panels, panel = part % panels;
        kernels::PackInt8GemmPanels(
            {data + i * b.matrix_stride, type == DataType::kInt8, b.row_stride, b.column_stride},
            b.columns, b.rows, panel, panel + 1, reinterpret_cast<uint8_t*>(packed) + i * stride);
      }
    });
  };
  // Few rows read all weights for little work.
  constexpr size_t kFewRows = 64;
  const HugePages pages = rows <= kFewRows ? HugePages::kPreferred : HugePages::kIfQuick;
  return packed_.GetOrRead(*bytes / sizeof(float), panels * b.count(), pack, pages);
}

size_t Int8Product::ScratchBytes(const KernelContext& context, const Int8ProductCall& call) const {
  const Plan plan = MakePlan(call);
  const size_t values = ValueBytes(call.a_zero) + ValueBytes(call.b_zero) +
                        ValueBytes(call.a_scale) + ValueBytes(call.b_scale);
  const size_t matrices = BatchPairs(plan.a.batch, plan.b.batch).count();
  static constexpr std::byte kPacked = {};
  const auto bytes_for = [&](bool is_packed) {
    Int8GemmArgs args = plan.args;
    if (is_packed) args.packed_b = reinterpret_cast<const uint8_t*>(&kPacked);
    const size_t rows = matrices == 1 ? kernels::PackedInt8GemmRowsSize(args) : 0;
    if (rows > 0) args.packed_a = &kPacked;
    const size_t tasks = kernels::Int8GemmTaskCount(args) * matrices;
    const size_t scratch = context.TaskScratchBytes(tasks, kernels::Int8GemmScratchSize(args));
    return CheckedAdd(rows, scratch).value_or(SIZE_MAX);
  };
  size_t bytes = packed_.is_kept() ? bytes_for(true) : 0;
  // Another run may pack B before this one reads it, but once it is packed, it stays so.
  if (packed_.ready() == nullptr) bytes = std::max(bytes, bytes_for(false));
  return CheckedAdd(values, bytes).value_or(SIZE_MAX);
}

namespace {

// Packs the rows of A once for all tasks, if they share them. Returns the memory after them.
std::byte* PackRows(std::byte* memory, KernelContext& context, Int8GemmArgs* args) {
  const size_t bytes = kernels::PackedInt8GemmRowsSize(*args);
  if (bytes == 0) return memory;
  const size_t tasks = kernels::PackInt8GemmRowsTaskCount(*args);
  context.threads().ParallelFor(tasks, 1, [&](size_t begin, size_t end) {
    for (size_t task = begin; task < end; ++task) {
      kernels::RunPackInt8GemmRowsTask(*args, task, memory);
    }
  });
  args->packed_a = memory;
  return memory + bytes;
}

}  // namespace

Status Int8Product::RunIn(std::byte* memory, KernelContext& context,
                          const Int8ProductCall& call) const {
  Plan plan = MakePlan(call);
  const BatchPairs pairs(plan.a.batch, plan.b.batch);
  TENON_ASSIGN_OR_RETURN(const LazyWeights::Source kept,
                         KeptB(context, plan.a.rows, plan.b, call.b->type()));
  if (kept.weights) {
    plan.args.packed_b = reinterpret_cast<const uint8_t*>(kept.weights);
  } else if (packed_.is_kept()) {
    plan.args.b.data = static_cast<const uint8_t*>(kept.constant.raw());
  }
  const size_t packed_stride = kernels::PackedInt8GemmBSize(plan.b.columns, plan.b.rows);
  ReadValues(call.a_zero, &memory, &plan.a_zero);
  ReadValues(call.b_zero, &memory, &plan.b_zero);
  ReadValues(call.a_scale, &memory, &plan.a_scale);
  ReadValues(call.b_scale, &memory, &plan.b_scale);
  if (call.a_scale) {
    // S * (a_scale * b_scale / y_scale), in this order if a_scale is one number.
    const size_t count = ElementsOf(call.b_scale);
    double y_scale = 1;
    if (call.y_scale) LoadElements(*call.y_scale, 0, 1, &y_scale);
    const float a_scale = plan.a_scale.per_line ? 1.0f : *plan.a_scale.data;
    for (size_t i = 0; i < count; ++i) {
      plan.b_scale.data[i] = a_scale * plan.b_scale.data[i] / static_cast<float>(y_scale);
    }
  }
  if (pairs.count() == 1) memory = PackRows(memory, context, &plan.args);
  const size_t tasks = kernels::Int8GemmTaskCount(plan.args);
  const size_t scratch_bytes = kernels::Int8GemmScratchSize(plan.args);
  const size_t element = ElementBytes(call.type);
  context.ForEachTaskIn(
      memory, tasks * pairs.count(), scratch_bytes, [&](size_t index, std::byte* scratch) {
        Int8GemmArgs args = plan.args;
        const size_t matrix = index / tasks;
        const BatchPairs::Pair pair = pairs.At(matrix);
        args.a.data += pair.a * plan.a.matrix_stride;
        args.b.data += pair.b * plan.b.matrix_stride;
        if (args.packed_b) args.packed_b += pair.b * packed_stride;
        args.a_zero = plan.a_zero.data + pair.a * plan.a_zero.matrix_stride;
        args.b_zero = plan.b_zero.data + pair.b * plan.b_zero.matrix_stride;
        args.c = static_cast<std::byte*>(call.y) + matrix * args.m * args.n * element;
        if (plan.a_scale.per_line) {
          args.epilogue.scale_rows = plan.a_scale.data + pair.a * plan.a_scale.matrix_stride;
        }
        if (plan.b_scale.per_line) {
          args.epilogue.scale_columns = plan.b_scale.data + pair.b * plan.b_scale.matrix_stride;
        } else if (call.b_scale) {
          args.epilogue.scale = *plan.b_scale.data;
        }
        kernels::RunInt8GemmTask(args, index % tasks, scratch);
      });
  return OkStatus();
}

Status Int8Product::Run(KernelContext& context, const Int8ProductCall& call) const {
  const size_t bytes = ScratchBytes(context, call);
  auto* memory = static_cast<std::byte*>(context.Scratch(bytes));
  if (memory == nullptr) return RuntimeException("out of memory: {} bytes of scratch", bytes);
  return RunIn(memory, context, call);
}

}  // namespace tenon
