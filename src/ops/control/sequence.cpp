// Operators on sequences of tensors. Sequences share their elements; a step that is the last to
// read a sequence changes it in place, so that a loop that appends does not copy what it has.
#include <utility>

#include "ops/control/sequence_inputs.h"
#include "ops/framework/op_row.h"

namespace tenon {
namespace {

// The type of a sequence's elements; kNone if it is unknown.
ValueType ElementOf(const ValueType& sequence) {
  return sequence.kind == Value::Kind::kSequence && sequence.held ? *sequence.held : ValueType();
}

// The type of a sequence that also holds a tensor of this type.
ValueType WithElement(const ValueType& sequence, const ValueType& tensor) {
  const ValueType held = ElementOf(sequence);
  if (held.kind == Value::Kind::kNone)
    return ValueType::Sequence(ValueType::Tensor(tensor.element_type));
  return ValueType::Sequence(CommonType(held, tensor));
}

// SequenceAt-11.
Status InferAt(const NoAttrs&, ShapeContext& context) {
  ValueType element = ElementOf(context.InputType(0));
  if (element.kind == Value::Kind::kNone) return UnknownShape();
  return context.SetOutputType(0, std::move(element));
}

Status RunAt(const NoAttrs&, KernelContext& context) {
  const Sequence& sequence = context.InputValue(0).sequence();
  TENON_ASSIGN_OR_RETURN(const int64_t position, IntegerOf(context, 1));
  TENON_ASSIGN_OR_RETURN(const size_t index,
                         NormalizePosition(position, sequence.elements.size(), false));
  context.SetOutput(0, sequence.elements[index]);
  return OkStatus();
}

// SequenceConstruct-11.
Status InferConstruct(const NoAttrs&, ShapeContext& context) {
  ValueType element = context.InputType(0);
  for (size_t i = 1; i < context.input_count(); ++i) {
    element = CommonType(element, context.InputType(i));
  }
  return context.SetOutputType(0, ValueType::Sequence(std::move(element)));
}

Status RunConstruct(const NoAttrs&, KernelContext& context) {
  auto sequence = std::make_shared<Sequence>();
  sequence->element_type = context.Input(0).type();
  sequence->elements.reserve(context.input_count());
  for (size_t i = 0; i < context.input_count(); ++i) {
    TENON_RETURN_IF_ERROR(CheckElement(*sequence, context.InputValue(i), i));
    TENON_ASSIGN_OR_RETURN(Value element, Retain(context.InputValue(i)));
    sequence->elements.push_back(std::move(element));
  }
  context.SetOutput(0, std::move(sequence));
  return OkStatus();
}

// SequenceEmpty-11: of float tensors unless `dtype` names another type.
struct EmptyAttrs {
  DataType dtype = DataType::kFloat;
  static constexpr auto Fields() { return std::tuple(Field("dtype", &EmptyAttrs::dtype)); }
};

Status InferEmpty(const EmptyAttrs& attrs, ShapeContext& context) {
  return context.SetOutputType(0, ValueType::Sequence(ValueType::Tensor(attrs.dtype)));
}

Status RunEmpty(const EmptyAttrs& attrs, KernelContext& context) {
  auto sequence = std::make_shared<Sequence>();
  sequence->element_type = attrs.dtype;
  context.SetOutput(0, std::move(sequence));
  return OkStatus();
}

// SequenceErase-11: without a position, the last element is removed.
Status InferErase(const NoAttrs&, ShapeContext& context) {
  return context.SetOutputType(0, context.InputType(0));
}

Status RunErase(const NoAttrs&, KernelContext& context) {
  int64_t position = -1;
  if (context.HasInput(1)) {
    TENON_ASSIGN_OR_RETURN(position, IntegerOf(context, 1));
  }
  const size_t size = context.InputValue(0).sequence().elements.size();
  TENON_ASSIGN_OR_RETURN(const size_t index, NormalizePosition(position, size, false));
  std::shared_ptr<Sequence> sequence = SequenceToChange(context, 0);
  sequence->elements.erase(sequence->elements.begin() + static_cast<ptrdiff_t>(index));
  context.SetOutput(0, std::move(sequence));
  return OkStatus();
}

// SequenceInsert-11: without a position, at the end.
Status InferInsert(const NoAttrs&, ShapeContext& context) {
  return context.SetOutputType(0, WithElement(context.InputType(0), context.InputType(1)));
}

Status RunInsert(const NoAttrs&, KernelContext& context) {
  const Sequence& before = context.InputValue(0).sequence();
  TENON_RETURN_IF_ERROR(CheckElement(before, context.InputValue(1), 1));
  size_t index = before.elements.size();
  if (context.HasInput(2)) {
    TENON_ASSIGN_OR_RETURN(const int64_t position, IntegerOf(context, 2));
    TENON_ASSIGN_OR_RETURN(index, NormalizePosition(position, before.elements.size(), true));
  }
  TENON_ASSIGN_OR_RETURN(Value element, Retain(context.InputValue(1)));
  std::shared_ptr<Sequence> sequence = SequenceToChange(context, 0);
  sequence->element_type = element.tensor().type();
  sequence->elements.insert(sequence->elements.begin() + static_cast<ptrdiff_t>(index),
                            std::move(element));
  context.SetOutput(0, std::move(sequence));
  return OkStatus();
}

// SequenceLength-11.
Status InferLength(const NoAttrs&, ShapeContext& context) {
  return context.SetOutput(0, SymbolicShape(), DataType::kInt64);
}

Status RunLength(const NoAttrs&, KernelContext& context) {
  *context.Output(0).data<int64_t>() =
      static_cast<int64_t>(context.InputValue(0).sequence().elements.size());
  return OkStatus();
}

constexpr KernelTraits kAllocates = {.allocates_outputs = true};

constexpr OpRow kRows[] = {
    Op<InferAt, RunAt>("SequenceAt", {.since = 11, .traits = kAllocates}),
    Op<InferConstruct, RunConstruct>("SequenceConstruct", {.since = 11, .traits = kAllocates}),
    Op<InferEmpty, RunEmpty>("SequenceEmpty", {.since = 11, .traits = kAllocates}),
    Op<InferErase, RunErase>("SequenceErase", {.since = 11, .traits = kAllocates}),
    Op<InferInsert, RunInsert>("SequenceInsert", {.since = 11, .traits = kAllocates}),
    Op<InferLength, RunLength>("SequenceLength", {.since = 11}),
};

}  // namespace

TENON_OP_FAMILY(Sequence, kRows);

}  // namespace tenon
