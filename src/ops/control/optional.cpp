// Optional, OptionalGetElement, OptionalHasElement. At run time an optional with a value is that
// value itself; an empty one is a separate kind of value.
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

bool IsEmpty(const Value& value) {
  return value.kind() == Value::Kind::kOptional && !value.optional().value.has_value();
}

// The type in an optional; any other type is returned unchanged.
const Value& HeldBy(const Value& value) {
  return value.kind() == Value::Kind::kOptional ? value.optional().value : value;
}

// Optional-15: of the input, or an empty one of type `type`.
struct OptionalAttrs {
  std::optional<ValueType> type;
  static constexpr auto Fields() { return std::tuple(Field("type", &OptionalAttrs::type)); }
};

Status InferOptional(const OptionalAttrs& attrs, ShapeContext& context) {
  if (context.HasInput(0)) {
    ValueType held = context.InputType(0);
    if (held.kind == Value::Kind::kNone) return UnknownShape();
    return context.SetOutputType(0, ValueType::Optional(std::move(held)));
  }
  if (!attrs.type) return UnknownShape();
  return context.SetOutputType(0, ValueType::Optional(*attrs.type));
}

Status RunOptional(const OptionalAttrs& attrs, KernelContext& context) {
  if (!context.HasInput(0)) {
    if (!attrs.type) return InvalidArgument("expected an input or attribute 'type', got neither");
    context.SetOutput(0, std::make_shared<Optional>());
    return OkStatus();
  }
  TENON_ASSIGN_OR_RETURN(Value value, Retain(context.InputValue(0)));
  context.SetOutput(0, std::move(value));
  return OkStatus();
}

// OptionalGetElement-15; since 18 the input may be the element instead of an optional.
Status InferGet(const NoAttrs&, ShapeContext& context) {
  const ValueType type = context.InputType(0);
  if (type.kind == Value::Kind::kNone) return UnknownShape();
  if (type.kind != Value::Kind::kOptional) return context.SetOutputType(0, type);
  return type.held ? context.SetOutputType(0, *type.held) : UnknownShape();
}

Status RunGet(const NoAttrs&, KernelContext& context) {
  const Value& input = context.InputValue(0);
  if (IsEmpty(input)) return InvalidArgument("input 0: expected an element, got an empty optional");
  TENON_ASSIGN_OR_RETURN(Value value, Retain(HeldBy(input)));
  context.SetOutput(0, std::move(value));
  return OkStatus();
}

// OptionalHasElement-15; since 18 the input may be absent, or be the element instead of an
// optional.
Status InferHas(const NoAttrs&, ShapeContext& context) {
  return context.SetOutput(0, SymbolicShape(), DataType::kBool);
}

// Allocates its output: whether the optional is empty does not follow from the feeds' shapes.
Status RunHas(const NoAttrs&, KernelContext& context) {
  TENON_ASSIGN_OR_RETURN(Tensor * output, context.AllocateOutput(0, DataType::kBool, Shape()));
  *output->data<bool>() = context.HasInput(0) && !IsEmpty(context.InputValue(0));
  return OkStatus();
}

constexpr KernelTraits kAllocates = {.allocates_outputs = true};

constexpr OpRow kRows[] = {
    Op<InferOptional, RunOptional>("Optional", {.since = 15, .traits = kAllocates}),
    Op<InferGet, RunGet>("OptionalGetElement", {.since = 15, .traits = kAllocates}),
    Op<InferHas, RunHas>("OptionalHasElement", {.since = 15, .traits = kAllocates}),
};

}  // namespace

TENON_OP_FAMILY(Optional, kRows);

}  // namespace tenon
