#include "runtime/feed_check.h"

#include <algorithm>

#include "runtime/dim_names.h"

namespace tenon {
namespace {

// Whether what a sequence or map holds is of the declared types.
bool FitsContent(const ValueType& type, const Value& feed) {
  if (!type.held) return true;
  if (feed.kind() == Value::Kind::kMap) {
    const Map& map = feed.map();
    return map.keys.type() == type.element_type && map.values.type() == type.held->element_type;
  }
  if (feed.kind() != Value::Kind::kSequence) return true;
  const std::vector<Value>& elements = feed.sequence().elements;
  return std::all_of(elements.begin(), elements.end(), [&](const Value& element) {
    return element.kind() == type.held->kind &&
           (!element.is_tensor() || element.tensor().type() == type.held->element_type) &&
           FitsContent(*type.held, element);
  });
}

// As ONNX Runtime writes types in the text below: tensor(float), but seq(float).
std::string TypeText(const ValueType& type) {
  const bool is_list =
      type.kind == Value::Kind::kSequence && type.held && type.held->kind == Value::Kind::kTensor;
  return is_list ? Format("seq({})", DataTypeName(type.held->element_type)) : type.TypeName();
}

// What an optional holds, if it is declared; else the type itself.
const ValueType& WithoutOptional(const ValueType& type) {
  return type.kind == Value::Kind::kOptional && type.held ? *type.held : type;
}

}  // namespace

AxisSymbols SymbolNumbers::Of(const ValueType& declared) {
  AxisSymbols symbols;
  const ValueType& type = WithoutOptional(declared);
  if (type.kind != Value::Kind::kTensor || !type.shape) return symbols;
  for (const Dim& dim : *type.shape) {
    const std::string_view name = dim.is_number() ? std::string_view() : dim.symbol_name();
    const bool is_size = has_any_ && !name.empty() && !IsPlaceholder(name);
    symbols.push_back(is_size ? numbers_.try_emplace(name, numbers_.size()).first->second
                              : kNoSymbol);
  }
  return symbols;
}

Status FeedCheck::Check(const std::string& name, const ValueType& declared,
                        const AxisSymbols& symbols, const Value& feed) {
  const bool is_optional = feed.kind() == Value::Kind::kOptional;
  const ValueType& type = is_optional ? declared : WithoutOptional(declared);
  if (type.kind == Value::Kind::kNone || type.kind == Value::Kind::kOptional) return OkStatus();
  if (feed.kind() != type.kind) {
    return InvalidArgument("input '{}': expected {}, got a {}", name, type.TypeName(),
                           ValueKindName(feed.kind()));
  }
  const bool fits_type =
      feed.is_tensor() ? feed.tensor().type() == type.element_type : FitsContent(type, feed);
  if (!fits_type) {
    // Programs look for this text of ONNX Runtime's. Which input it is follows if there are
    // several.
    return InvalidArgument("Unexpected input data type. Actual: ({}) , expected: ({}){}",
                           TypeText(ValueType::Of(feed)), TypeText(type),
                           is_only_input_ ? "" : Format(" for input '{}'", name));
  }
  if (!feed.is_tensor()) return OkStatus();
  const Tensor& tensor = feed.tensor();
  if (!type.shape) return OkStatus();
  const bool is_scalar = type.shape->rank() == 0 && tensor.size() == 1;
  if (type.shape->rank() != tensor.rank() && !is_scalar) {
    return InvalidArgument("input '{}': expected rank {} {}, got rank {} {}", name,
                           type.shape->rank(), *type.shape, tensor.rank(), tensor.shape());
  }
  for (size_t axis = 0; axis < type.shape->rank(); ++axis) {
    const Dim& dim = (*type.shape)[axis];
    const int64_t size = tensor.shape()[axis];
    const auto mismatch = [&](int64_t expected) {
      return InvalidArgument("input '{}': expected size {} at axis {} of {}, got {}", name,
                             expected, axis, *type.shape, tensor.shape());
    };
    if (dim.is_number()) {
      if (dim.value() != size) return mismatch(dim.value());
    } else if (symbols[axis] != kNoSymbol) {
      const int64_t first = FirstSizeOf(symbols[axis], size);
      if (first == size) continue;
      has_unequal_names_ = true;
      return mismatch(first);
    }
  }
  return OkStatus();
}

int64_t FeedCheck::FirstSizeOf(size_t symbol, int64_t size) {
  if (symbol >= sizes_.size()) sizes_.resize(symbol + 1, -1);
  if (sizes_[symbol] < 0) sizes_[symbol] = size;
  return sizes_[symbol];
}

}  // namespace tenon
