#include "tensor/value.h"

#include <algorithm>

namespace tenon {
namespace {

// Whether the value's memory, if it is a tensor, is this value's alone.
bool IsAlone(const Value& value) { return !value.is_tensor() || !value.is_shared(); }

}  // namespace

Value::Value() noexcept = default;
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;
Value::Value(Tensor tensor) noexcept : held_(std::move(tensor)) {}
Value::Value(std::shared_ptr<Sequence> sequence) noexcept : held_(std::move(sequence)) {}
Value::Value(std::shared_ptr<Map> map) noexcept : held_(std::move(map)) {}
Value::Value(std::shared_ptr<Optional> optional) noexcept : held_(std::move(optional)) {}
Value::Value(std::shared_ptr<SparseTensor> sparse) noexcept : held_(std::move(sparse)) {}
Value::Value(std::shared_ptr<Opaque> opaque) noexcept : held_(std::move(opaque)) {}

std::shared_ptr<Sequence> Value::TakeSequence() {
  auto taken = std::move(*Held<std::shared_ptr<Sequence>>());
  held_ = std::monostate();
  return taken;
}

bool Value::is_shared() const {
  return std::visit(
      [](const auto& held) {
        using T = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return false;
        } else if constexpr (std::is_same_v<T, Tensor>) {
          return held.owner().use_count() != 1;
        } else {
          return held.use_count() != 1;
        }
      },
      held_);
}

std::string_view ValueKindName(Value::Kind kind) {
  constexpr std::string_view kNames[] = {"nothing",  "tensor",        "sequence",    "map",
                                         "optional", "sparse tensor", "opaque value"};
  return kNames[static_cast<size_t>(kind)];
}

Result<Value> Retain(const Value& value) {
  if (!value.is_tensor() || value.tensor().owner() != nullptr) return value;
  TENON_ASSIGN_OR_RETURN(Tensor copy, value.tensor().Clone());
  return Value(std::move(copy));
}

Result<Value> Detach(const Value& value) {
  if (value.kind() == Value::Kind::kSequence) {
    const Sequence& sequence = value.sequence();
    if (std::all_of(sequence.elements.begin(), sequence.elements.end(), IsAlone)) return value;
    auto copy = std::make_shared<Sequence>();
    copy->element_type = sequence.element_type;
    for (const Value& element : sequence.elements) {
      TENON_ASSIGN_OR_RETURN(Value detached, Detach(element));
      copy->elements.push_back(std::move(detached));
    }
    return Value(std::move(copy));
  }
  if (IsAlone(value)) return value;
  TENON_ASSIGN_OR_RETURN(Tensor copy, value.tensor().Clone());
  return Value(std::move(copy));
}

}  // namespace tenon
