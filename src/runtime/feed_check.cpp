#include "runtime/feed_check.h"

#include <algorithm>

namespace tenon {
namespace {

// That what a sequence or map holds is of the declared types.
Status CheckContent(const std::string& name, const ValueType& type, const Value& feed) {
  const auto mismatch = [&](const ValueType& expected, const Value& value) {
    return InvalidArgument("input '{}': unexpected data type; expected {} in it, got {}", name,
                           expected.TypeName(), ValueType::Of(value).TypeName());
  };
  if (!type.held) return OkStatus();
  if (feed.kind() == Value::Kind::kMap) {
    const Map& map = feed.map();
    const bool fits =
        map.keys.type() == type.element_type && map.values.type() == type.held->element_type;
    return fits ? OkStatus() : mismatch(type, feed);
  }
  if (feed.kind() != Value::Kind::kSequence) return OkStatus();
  for (const Value& element : feed.sequence().elements) {
    const bool fits = element.kind() == type.held->kind &&
                      (!element.is_tensor() || element.tensor().type() == type.held->element_type);
    if (!fits) return mismatch(*type.held, element);
    TENON_RETURN_IF_ERROR(CheckContent(name, *type.held, element));
  }
  return OkStatus();
}

}  // namespace

Status FeedCheck::Check(const std::string& name, const ValueType& declared, const Value& feed) {
  const bool is_in_optional = declared.kind == Value::Kind::kOptional &&
                              feed.kind() != Value::Kind::kOptional && declared.held;
  const ValueType& type = is_in_optional ? *declared.held : declared;
  if (type.kind == Value::Kind::kNone || type.kind == Value::Kind::kOptional) return OkStatus();
  if (feed.kind() != type.kind) {
    return InvalidArgument("input '{}': expected {}, got a {}", name, type.TypeName(),
                           ValueKindName(feed.kind()));
  }
  if (!feed.is_tensor()) return CheckContent(name, type, feed);
  const Tensor& tensor = feed.tensor();
  if (tensor.type() != type.element_type) {
    return InvalidArgument("input '{}': unexpected data type; expected tensor({}), got tensor({})",
                           name, DataTypeName(type.element_type), DataTypeName(tensor.type()));
  }
  if (!type.shape) return OkStatus();
  if (type.shape->rank() != tensor.rank()) {
    return InvalidArgument("input '{}': expected rank {} {}, got rank {} {}", name,
                           type.shape->rank(), *type.shape, tensor.rank(), tensor.shape());
  }
  for (size_t axis = 0; axis < tensor.rank(); ++axis) {
    const Dim& dim = (*type.shape)[axis];
    const int64_t size = tensor.shape()[axis];
    const auto mismatch = [&](int64_t expected) {
      return InvalidArgument("input '{}': expected size {} at axis {} of {}, got {}", name,
                             expected, axis, *type.shape, tensor.shape());
    };
    if (dim.is_number()) {
      if (dim.value() != size) return mismatch(dim.value());
      continue;
    }
    const std::string_view symbol = dim.symbol_name();
    if (symbol.empty()) continue;
    const auto known = std::find_if(symbols_.begin(), symbols_.end(),
                                    [&](const auto& entry) { return entry.first == symbol; });
    if (known == symbols_.end()) {
      symbols_.emplace_back(symbol, size);
    } else if (known->second != size) {
      return mismatch(known->second);
    }
  }
  return OkStatus();
}

}  // namespace tenon
