// Element-wise operators with two inputs, and with any number of them (Sum, Max, Min, Mean).
#include <algorithm>
#include <concepts>
#include <cstring>
#include <optional>

#include "kernels/elementwise/broadcast.h"
#include "ops/framework/element.h"
#include "ops/framework/element_conversion.h"
#include "ops/framework/element_type.h"
#include "ops/framework/op_row.h"
#include "ops/framework/run_broadcast.h"

namespace tenon {
namespace {

using kernels::BinaryFunctions;
using kernels::BinaryOp;
using kernels::LogicalOp;

Result<SymbolicShape> BroadcastInputs(ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  for (size_t i = 1; i < context.input_count(); ++i) {
    TENON_ASSIGN_OR_RETURN(const SymbolicShape next, context.Input(i));
    TENON_ASSIGN_OR_RETURN(shape, BroadcastShapes(shape, next));
  }
  return shape;
}

// Computes the elements of the output where those of both inputs are known dimensions.
template <BinaryOp op>
void PropagateDims(ShapeContext& context) {
  const auto a = context.KnownDims(0);
  const auto b = context.KnownDims(1);
  if (!a || !b || (a->size() != b->size() && a->size() != 1 && b->size() != 1)) return;
  const size_t count = a->size() == 1 ? b->size() : a->size();  // 0 if one is empty
  Dims result;
  for (size_t i = 0; i < count; ++i) {
    const Dim& x = (*a)[a->size() == 1 ? 0 : i];
    const Dim& y = (*b)[b->size() == 1 ? 0 : i];
    switch (op) {
      case BinaryOp::kAdd:
        result.push_back(x + y);
        break;
      case BinaryOp::kSub:
        result.push_back(x - y);
        break;
      case BinaryOp::kMul:
        result.push_back(x * y);
        break;
      case BinaryOp::kMax:
        result.push_back(Max(x, y));
        break;
      case BinaryOp::kMin:
        result.push_back(Min(x, y));
        break;
      case BinaryOp::kDiv: {
        // Integer division truncates; sizes are not negative, where that is the same as FloorDiv.
        const bool is_negative =
            (x.is_number() && x.value() < 0) || (y.is_number() && y.value() < 0);
        if (is_negative) return;
        result.push_back(FloorDiv(x, y));
        break;
      }
      case BinaryOp::kEqual:
        if (!x.is_number() || !y.is_number()) return;
        result.push_back(x == y ? 1 : 0);
        break;
      default:
        return;
    }
  }
  context.SetOutputDims(0, std::move(result));
}

template <BinaryOp op, class Attrs>
Status InferBinary(const Attrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, BroadcastInputs(context));
  PropagateDims<op>(context);
  if (kernels::IsComparison(op)) return context.SetOutput(0, std::move(shape), DataType::kBool);
  return context.SetOutput(0, std::move(shape));
}

Result<BinaryFunctions> FunctionsFor(BinaryOp op, DataType type) {
  TENON_ASSIGN_OR_RETURN(const kernels::ElementType element, ElementTypeOf(type));
  return kernels::FindBinary(op, element);
}

// Error: kFail if `op` would divide an integer by zero.
Status CheckDivisors(BinaryOp op, const Tensor& b, const Tensor& y) {
  const bool divides = op == BinaryOp::kDiv || op == BinaryOp::kMod || op == BinaryOp::kFmod;
  if (!divides || y.size() == 0 || !kInts.Contains(b.type())) return OkStatus();
  bool has_zero = false;
  VisitNumber(b.type(), [&]<class T>(T) {
    if constexpr (std::integral<T>) {
      for (const T divisor : b.values<T>()) has_zero |= divisor == 0;
    }
  });
  return has_zero ? Fail("integer division by zero: expected no 0 in input 1") : OkStatus();
}

template <BinaryOp op>
Status RunBinary(const NoAttrs&, KernelContext& context) {
  const Tensor& a = context.Input(0);
  TENON_RETURN_IF_ERROR(CheckDivisors(op, context.Input(1), context.Output(0)));
  TENON_ASSIGN_OR_RETURN(const BinaryFunctions functions, FunctionsFor(op, a.type()));
  return RunBroadcast(context, functions, kernels::ElementwiseGrain(op), a, context.Input(1),
                      context.Output(0));
}

// Mod-10: `fmod` gives the result the dividend's sign.
struct ModAttrs {
  bool fmod = false;
  static constexpr auto Fields() { return std::tuple(Field("fmod", &ModAttrs::fmod)); }
};

Status RunMod(const ModAttrs& attrs, KernelContext& context) {
  return attrs.fmod ? RunBinary<BinaryOp::kFmod>({}, context)
                    : RunBinary<BinaryOp::kMod>({}, context);
}

// The type in which a base and an exponent of different types are computed. An integer exponent of
// a float base is exact in the base's type unless the power overflows anyway.
DataType PowType(DataType base, DataType exponent) {
  if (!kInts.Contains(base)) return kInts.Contains(exponent) ? base : DataType::kDouble;
  return kInts.Contains(exponent) ? DataType::kInt64 : DataType::kDouble;
}

// Bytes of memory for `x` as elements of another type; 0 if it has that type.
size_t BytesAs(DataType type, const Tensor& x) {
  const size_t bytes = static_cast<size_t>(x.size()) * DataTypeBits(type) / 8;
  return x.type() == type ? 0 : (bytes + 63) / 64 * 64;
}

// `x` itself if it is of `type`; else a view of `memory` for such elements, and `memory` moves past
// it.
Tensor ViewAs(DataType type, const Tensor& x, std::byte*& memory) {
  if (x.type() == type) return x.Reshaped(x.shape());
  Tensor view = Tensor::View(type, x.shape(), memory);
  memory += BytesAs(type, x);
  return view;
}

Status RunMixedPow(KernelContext& context) {
  const Tensor& base = context.Input(0);
  const Tensor& exponent = context.Input(1);
  Tensor& y = context.Output(0);
  const DataType type = PowType(base.type(), exponent.type());
  const size_t bytes = BytesAs(type, base) + BytesAs(type, exponent) + BytesAs(type, y);
  auto* memory = static_cast<std::byte*>(context.Scratch(bytes));
  if (memory == nullptr) return RuntimeException("out of memory for {} bytes", bytes);
  Tensor wide_base = ViewAs(type, base, memory);
  Tensor wide_exponent = ViewAs(type, exponent, memory);
  Tensor wide_y = ViewAs(type, y, memory);
  TENON_RETURN_IF_ERROR(ConvertElements(base, wide_base, {}, context.threads()));
  TENON_RETURN_IF_ERROR(ConvertElements(exponent, wide_exponent, {}, context.threads()));
  TENON_ASSIGN_OR_RETURN(const BinaryFunctions functions, FunctionsFor(BinaryOp::kPow, type));
  TENON_RETURN_IF_ERROR(RunBroadcast(context, functions, kernels::ElementwiseGrain(BinaryOp::kPow),
                                     wide_base, wide_exponent, wide_y));
  return ConvertElements(wide_y, y, {}, context.threads());
}

// Pow-13: the exponent may have a type of its own.
Status RunPow(const NoAttrs&, KernelContext& context) {
  const bool is_mixed = context.Input(0).type() != context.Input(1).type();
  return is_mixed ? RunMixedPow(context) : RunBinary<BinaryOp::kPow>({}, context);
}

// Equal-19 of strings.
Status RunEqualStrings(const NoAttrs&, KernelContext& context) {
  const auto* a = context.Input(0).data<std::string>();
  const auto* b = context.Input(1).data<std::string>();
  bool* y = context.Output(0).data<bool>();
  const std::span<const int64_t> shapes[] = {context.Input(0).shape().dims(),
                                             context.Input(1).shape().dims()};
  TENON_ASSIGN_OR_RETURN(const kernels::BroadcastPlan plan, kernels::MakeBroadcastPlan(shapes));
  const kernels::BroadcastTasks tasks = kernels::SplitBroadcast(plan, plan.output_size());
  for (size_t task = 0; task < tasks.count; ++task) {
    kernels::ForEachRunOfTask(plan, tasks, task, [&](const auto& offsets, size_t to, size_t n) {
      for (size_t i = 0; i < n; ++i) {
        y[to + i] =
            a[offsets[0] + i * plan.inner_stride[0]] == b[offsets[1] + i * plan.inner_stride[1]];
      }
    });
  }
  return OkStatus();
}

// Before opset 7, `broadcast` aligns b's axes with a's, starting at `axis`.
struct OldBroadcastAttrs {
  bool broadcast = false;
  std::optional<int64_t> axis;
  static constexpr auto Fields() {
    return std::tuple(Field("broadcast", &OldBroadcastAttrs::broadcast),
                      Field("axis", &OldBroadcastAttrs::axis));
  }
};

// The shape of b with trailing axes of size 1, so that NumPy's rules align it with a as asked.
Result<Shape> LinedUp(const OldBroadcastAttrs& attrs, const Shape& a, const Shape& b) {
  if (!attrs.broadcast || !attrs.axis) return b;
  TENON_ASSIGN_OR_RETURN(const size_t axis, NormalizeAxis(*attrs.axis, a.rank()));
  if (axis + b.rank() > a.rank()) {
    return InvalidArgument("input 1 {} does not fit into input 0 {} from axis {} on", b, a, axis);
  }
  Shape shape = b;
  while (axis + shape.rank() < a.rank()) shape.Append(1);
  return shape;
}

// Whether `y` is the shape to which `a` and `b` broadcast.
bool BroadcastTo(const Shape& a, const Shape& b, const Shape& y) {
  if (std::max(a.rank(), b.rank()) != y.rank()) return false;
  const auto dim_of = [&](const Shape& shape, size_t axis) {
    const size_t missing = y.rank() - shape.rank();
    return axis < missing ? 1 : shape[axis - missing];
  };
  for (size_t axis = 0; axis < y.rank(); ++axis) {
    const int64_t of_a = dim_of(a, axis), of_b = dim_of(b, axis);
    const bool fits = of_a == of_b || of_a == 1 || of_b == 1;
    if (!fits || (of_a == 1 ? of_b : of_a) != y[axis]) return false;
  }
  return true;
}

template <BinaryOp op>
Status InferOld(const OldBroadcastAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  if (kernels::IsComparison(op)) return context.SetOutput(0, std::move(shape), DataType::kBool);
  return context.SetOutput(0, std::move(shape));
}

Status RunOldBroadcast(const OldBroadcastAttrs& attrs, const BinaryFunctions& functions,
                       size_t grain, KernelContext& context) {
  const Tensor& a = context.Input(0);
  TENON_ASSIGN_OR_RETURN(Shape shape, LinedUp(attrs, a.shape(), context.Input(1).shape()));
  const Tensor b = context.Input(1).Reshaped(std::move(shape));
  if (!BroadcastTo(a.shape(), b.shape(), a.shape())) {
    return InvalidArgument("input 1 {} does not broadcast to input 0 {}", b.shape(), a.shape());
  }
  return RunBroadcast(context, functions, grain, a, b, context.Output(0));
}

template <BinaryOp op>
Status RunOld(const OldBroadcastAttrs& attrs, KernelContext& context) {
  TENON_RETURN_IF_ERROR(CheckDivisors(op, context.Input(1), context.Output(0)));
  TENON_ASSIGN_OR_RETURN(const BinaryFunctions functions,
                         FunctionsFor(op, context.Input(0).type()));
  return RunOldBroadcast(attrs, functions, kernels::ElementwiseGrain(op), context);
}

template <LogicalOp op>
Status RunOldLogical(const OldBroadcastAttrs& attrs, KernelContext& context) {
  return RunOldBroadcast(attrs, kernels::FindLogical(op),
                         kernels::ElementwiseGrain(BinaryOp::kEqual), context);
}

// PRelu-6: one slope, or one for each channel (axis 1).
Status InferOldPRelu(const NoAttrs&, ShapeContext& context) {
  TENON_ASSIGN_OR_RETURN(SymbolicShape shape, context.Input(0));
  return context.SetOutput(0, std::move(shape));
}

Status RunOldPRelu(const NoAttrs&, KernelContext& context) {
  const bool is_per_channel = context.Input(1).size() != 1 && context.Input(0).rank() > 1;
  return RunOld<BinaryOp::kPRelu>({true, is_per_channel ? std::optional<int64_t>(1) : std::nullopt},
                                  context);
}

template <LogicalOp op>
Status RunLogical(const NoAttrs&, KernelContext& context) {
  return RunBroadcast(context, kernels::FindLogical(op),
                      kernels::ElementwiseGrain(BinaryOp::kEqual), context.Input(0),
                      context.Input(1), context.Output(0));
}

// y = x, broadcast.
Status SpreadOver(const Tensor& x, Tensor& y) {
  const std::span<const int64_t> shapes[] = {x.shape().dims(), y.shape().dims()};
  TENON_ASSIGN_OR_RETURN(const kernels::BroadcastPlan plan, kernels::MakeBroadcastPlan(shapes));
  const kernels::BroadcastTasks tasks = kernels::SplitBroadcast(plan, plan.output_size());
  const size_t size = DataTypeBits(x.type()) / 8;
  const auto* const elements = static_cast<const std::byte*>(x.raw());
  auto* const spread = static_cast<std::byte*>(y.raw());
  for (size_t task = 0; task < tasks.count; ++task) {
    kernels::ForEachRunOfTask(plan, tasks, task, [&](const auto& offsets, size_t to, size_t n) {
      const std::byte* from = elements + offsets[0] * size;
      std::byte* into = spread + to * size;
      for (size_t i = 0; i < n; ++i, into += size) {
        std::memcpy(into, from + i * plan.inner_stride[0] * size, size);
      }
    });
  }
  return OkStatus();
}

// Sum-8, Max-8, Min-8: one or more inputs, combined from left to right.
template <BinaryOp op>
Status RunVariadic(const NoAttrs&, KernelContext& context) {
  Tensor& y = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const BinaryFunctions functions, FunctionsFor(op, y.type()));
  const size_t grain = kernels::ElementwiseGrain(op);
  if (context.input_count() == 1) {
    std::copy_n(static_cast<const std::byte*>(context.Input(0).raw()), y.bytes(),
                static_cast<std::byte*>(y.raw()));
    return OkStatus();
  }
  // If the first two inputs broadcast to the output's shape, their result is the first partial
  // result; else that is the first input, broadcast to the output's shape.
  const Tensor& a = context.Input(0);
  const Tensor& b = context.Input(1);
  size_t next = 2;
  if (BroadcastTo(a.shape(), b.shape(), y.shape())) {
    TENON_RETURN_IF_ERROR(RunBroadcast(context, functions, grain, a, b, y));
  } else {
    TENON_RETURN_IF_ERROR(SpreadOver(a, y));
    next = 1;
  }
  for (size_t i = next; i < context.input_count(); ++i) {
    TENON_RETURN_IF_ERROR(RunBroadcast(context, functions, grain, y, context.Input(i), y));
  }
  return OkStatus();
}

// Mean-8.
Status RunMean(const NoAttrs& attrs, KernelContext& context) {
  TENON_RETURN_IF_ERROR(RunVariadic<BinaryOp::kAdd>(attrs, context));
  Tensor& y = context.Output(0);
  TENON_ASSIGN_OR_RETURN(const BinaryFunctions divide, FunctionsFor(BinaryOp::kDiv, y.type()));
  const auto count = static_cast<double>(context.input_count());
  const auto float_count = static_cast<float>(count);
  const void* divisor =
      y.type() == DataType::kFloat ? static_cast<const void*>(&float_count) : &count;
  const ScalarStep step = {divide.vector_scalar, divisor};
  RunScalarSteps(context, {&step, 1}, y, y);
  return OkStatus();
}

constexpr TypeSet kArithmetic = kInts | TypeSet{DataType::kFloat, DataType::kDouble};
constexpr TypeSet kFloatAndDouble = {DataType::kFloat, DataType::kDouble};
constexpr KernelTraits kEither = {.in_place_input = 0, .in_place_also = 1};

template <BinaryOp op>
constexpr OpRow Binary(std::string_view name, int32_t since) {
  return Op<InferBinary<op, NoAttrs>, RunBinary<op>>(
      name, {.since = since, .types = kArithmetic, .traits = kEither});
}

template <BinaryOp op>
constexpr OpRow Old(std::string_view name, TypeSet types = kArithmetic) {
  return Op<InferOld<op>, RunOld<op>>(name, {.since = 1, .types = types});
}

template <BinaryOp op>
constexpr OpRow Compare(std::string_view name, int32_t since, TypeSet types = kArithmetic) {
  return Op<InferBinary<op, NoAttrs>, RunBinary<op>>(name, {.since = since, .types = types});
}

template <LogicalOp op>
constexpr OpRow Logical(std::string_view name) {
  return Op<InferBinary<BinaryOp::kEqual, NoAttrs>, RunLogical<op>>(
      name, {.since = 7, .types = {DataType::kBool}, .traits = kEither});
}

template <LogicalOp op>
constexpr OpRow OldLogical(std::string_view name) {
  return Op<InferOld<BinaryOp::kEqual>, RunOldLogical<op>>(name, {.types = {DataType::kBool}});
}

template <BinaryOp op>
constexpr OpRow Variadic(std::string_view name) {
  return Op<InferBinary<BinaryOp::kPow, NoAttrs>, RunVariadic<op>>(
      name, {.since = 1, .types = kArithmetic});
}

constexpr OpRow kRows[] = {
    Old<BinaryOp::kAdd>("Add"),
    Old<BinaryOp::kSub>("Sub"),
    Old<BinaryOp::kMul>("Mul"),
    Old<BinaryOp::kDiv>("Div"),
    Old<BinaryOp::kPow>("Pow"),
    Old<BinaryOp::kEqual>("Equal", kArithmetic | TypeSet{DataType::kBool}),
    Old<BinaryOp::kLess>("Less"),
    Old<BinaryOp::kGreater>("Greater"),
    OldLogical<LogicalOp::kAnd>("And"),
    OldLogical<LogicalOp::kOr>("Or"),
    OldLogical<LogicalOp::kXor>("Xor"),
    Op<InferOldPRelu, RunOldPRelu>("PRelu", {.types = kFloatAndDouble}),
    Binary<BinaryOp::kAdd>("Add", 7),
    Binary<BinaryOp::kSub>("Sub", 7),
    Binary<BinaryOp::kMul>("Mul", 7),
    Binary<BinaryOp::kDiv>("Div", 7),
    Binary<BinaryOp::kPRelu>("PRelu", 7),
    Op<InferBinary<BinaryOp::kPow, NoAttrs>, RunPow>("Pow", {.since = 7, .types = kArithmetic}),
    Op<InferBinary<BinaryOp::kMod, ModAttrs>, RunMod>("Mod", {.since = 10, .types = kArithmetic}),
    Compare<BinaryOp::kEqual>("Equal", 7, kArithmetic | TypeSet{DataType::kBool}),
    Op<InferBinary<BinaryOp::kEqual, NoAttrs>, RunEqualStrings>(
        "Equal", {.since = 7, .types = {DataType::kString}}),
    Compare<BinaryOp::kLess>("Less", 7),
    Compare<BinaryOp::kGreater>("Greater", 7),
    Compare<BinaryOp::kLessOrEqual>("LessOrEqual", 12),
    Compare<BinaryOp::kGreaterOrEqual>("GreaterOrEqual", 12),
    Logical<LogicalOp::kAnd>("And"),
    Logical<LogicalOp::kOr>("Or"),
    Logical<LogicalOp::kXor>("Xor"),
    Variadic<BinaryOp::kAdd>("Sum"),
    Variadic<BinaryOp::kMax>("Max"),
    Variadic<BinaryOp::kMin>("Min"),
    Op<InferBinary<BinaryOp::kPow, NoAttrs>, RunMean>("Mean",
                                                      {.since = 1, .types = kFloatAndDouble}),
};

}  // namespace

TENON_OP_FAMILY(Binary, kRows);

}  // namespace tenon
