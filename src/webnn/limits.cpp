#include "webnn/limits.h"

#include <limits>
#include <utility>

#include "base/json_value.h"

namespace tenon::webnn {
namespace {

struct TypeName {
  DataType type;
  std::string_view name;
};
constexpr TypeName kTypeNames[] = {
    {DataType::kFloat, "float32"}, {DataType::kFloat16, "float16"}, {DataType::kInt64, "int64"},
    {DataType::kUint64, "uint64"}, {DataType::kInt32, "int32"},     {DataType::kUint32, "uint32"},
    {DataType::kInt8, "int8"},     {DataType::kUint8, "uint8"},     {DataType::kInt4, "int4"},
    {DataType::kUint4, "uint4"},
};

// Integers that int32 replaces if a context lacks them.
constexpr TypeSet kReplaceable = {DataType::kInt64, DataType::kUint64, DataType::kUint32,
                                  DataType::kInt8,  DataType::kUint8,  DataType::kBool};

size_t RankOf(const JsonValue& range, std::string_view member, size_t fallback) {
  const JsonValue* const rank = range.Find(member);
  if (rank == nullptr || rank->kind != JsonValue::Kind::kNumber || rank->number < 0)
    return fallback;
  return static_cast<size_t>(rank->number);
}

OperandLimits ReadOperand(const JsonValue& json) {
  OperandLimits limits;
  if (const JsonValue* const types = json.Find("dataTypes")) {
    for (const JsonValue& name : types->elements) {
      const DataType type = OperandTypeFromName(name.text);
      if (type != DataType::kUndefined) limits.types = limits.types | TypeSet{type};
    }
  }
  if (const JsonValue* const range = json.Find("rankRange")) {
    limits.min_rank = RankOf(*range, "min", limits.min_rank);
    limits.max_rank = RankOf(*range, "max", limits.max_rank);
  }
  return limits;
}

}  // namespace

std::string_view OperandTypeName(DataType type) {
  for (const TypeName& known : kTypeNames) {
    if (known.type == type) return known.name;
  }
  return "";
}

DataType OperandTypeFromName(std::string_view name) {
  for (const TypeName& known : kTypeNames) {
    if (known.name == name) return known.type;
  }
  return DataType::kUndefined;
}

Result<Limits> Limits::Parse(std::string_view json) {
  const std::optional<JsonValue> root = ParseJson(json);
  if (!root || root->kind != JsonValue::Kind::kObject) {
    return InvalidArgument("expected the JSON text of opSupportLimits(), got '{}'",
                           json.substr(0, 40));
  }
  Limits limits;
  limits.max_bytes_ = std::numeric_limits<double>::infinity();
  for (const auto& [name, value] : root->members) {
    if (name == "preferredInputLayout") {
      limits.prefers_channels_last_ = value.text == "nhwc";
    } else if (name == "maxTensorByteLength") {
      limits.max_bytes_ = value.number;
    } else if (name == "input") {
      limits.input_ = ReadOperand(value);
    } else if (name == "constant") {
      limits.constant_ = ReadOperand(value);
    } else if (name == "output") {
      limits.output_ = ReadOperand(value);
    } else {
      for (const auto& [operand, of_operand] : value.members) {
        limits.operators_[name].emplace(operand, ReadOperand(of_operand));
      }
    }
  }
  return limits;
}

const OperandLimits* Limits::Find(std::string_view op, std::string_view operand) const {
  const auto known = operators_.find(op);
  if (known == operators_.end()) return nullptr;
  const auto limits = known->second.find(operand);
  return limits == known->second.end() ? nullptr : &limits->second;
}

DataType Limits::TypeFor(DataType type) const {
  const DataType numeric = type == DataType::kBool ? DataType::kUint8 : type;
  if (IsEverywhere(numeric)) return numeric;
  const bool is_replaced = kReplaceable.Contains(numeric) && IsEverywhere(DataType::kInt32);
  return is_replaced ? DataType::kInt32 : DataType::kUndefined;
}

}  // namespace tenon::webnn
