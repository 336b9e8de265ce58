#include "ops/control/sequence_inputs.h"

#include <utility>

namespace tenon {

Result<int64_t> IntegerOf(KernelContext& context, size_t i) {
  TENON_ASSIGN_OR_RETURN(const Shape integers, IntegersOf(context.Input(i)));
  if (integers.rank() != 1) {
    return InvalidArgument("input {}: expected one integer, got shape {}", i,
                           context.Input(i).shape());
  }
  return integers[0];
}

Result<size_t> NormalizePosition(int64_t position, size_t size, bool may_be_end) {
  const auto count = static_cast<int64_t>(size);
  const int64_t last = may_be_end ? count : count - 1;
  if (position < -count || position > last) {
    return InvalidArgument("expected a position in [{}, {}] of a sequence of {} elements, got {}",
                           -count, last, size, position);
  }
  return static_cast<size_t>(position < 0 ? position + count : position);
}

Status CheckElement(const Sequence& sequence, const Value& element, size_t i) {
  const DataType type = element.is_tensor() ? element.tensor().type() : DataType::kUndefined;
  const bool is_free = sequence.elements.empty() && sequence.element_type == DataType::kUndefined;
  if (!element.is_tensor() || (type != sequence.element_type && !is_free)) {
    return InvalidArgument("input {}: expected a tensor of {} as in the sequence, got a {} of {}",
                           i, DataTypeName(sequence.element_type), ValueKindName(element.kind()),
                           DataTypeName(type));
  }
  return OkStatus();
}

std::shared_ptr<Sequence> SequenceToChange(KernelContext& context, size_t i) {
  if (Value* value = context.InputToConsume(i)) return value->TakeSequence();
  return std::make_shared<Sequence>(context.InputValue(i).sequence());
}

}  // namespace tenon
