#include "ir/type_check.h"

#include <algorithm>
#include <functional>

#include "ir/schema.h"

namespace tenon {
namespace {

bool IsKnown(const ValueType& type) {
  switch (type.kind) {
    case Value::Kind::kTensor:
    case Value::Kind::kSparseTensor:
      return type.element_type != DataType::kUndefined;
    case Value::Kind::kSequence:
      return type.held != nullptr && IsKnown(*type.held);
    default:
      return false;
  }
}

// The formal of the i-th input; null if the schema has none.
const OpFormal* FormalOf(const OpSchema& schema, size_t i) {
  if (schema.inputs.empty()) return nullptr;
  if (i < schema.inputs.size()) return &schema.inputs[i];
  const OpFormal& last = schema.inputs.back();
  return last.kind == FormalKind::kVariadic ? &last : nullptr;
}

bool IsOfOnnx(const OpSchema& schema) {
  return schema.domain.empty() || schema.domain == "ai.onnx.ml";
}

bool Allows(const OpTypeConstraint& constraint, const ValueType& type) {
  const std::span<const std::string_view> others = constraint.others;
  if (type.is_tensor() && constraint.tensors.Contains(type.element_type)) return true;
  if (!others.empty() && std::find(others.begin(), others.end(), type.TypeName()) != others.end())
    return true;
  if (type.kind == Value::Kind::kSparseTensor) {
    return constraint.sparse_tensors.Contains(type.element_type);
  }
  return type.kind == Value::Kind::kSequence && type.held->is_tensor() &&
         constraint.sequences.Contains(type.held->element_type);
}

// Operators of ONNX Runtime that only take float16, or float, there take any floating-point type
// here.
bool AllowsAnyFloat(const OpSchema& schema, const OpTypeConstraint& constraint,
                    const ValueType& type) {
  return !IsOfOnnx(schema) && type.is_tensor() && kFloats.Contains(type.element_type) &&
         (constraint.tensors.Contains(DataType::kFloat) ||
          constraint.tensors.Contains(DataType::kFloat16));
}

// Whether type.TypeName() is `name`.
bool IsNamed(const ValueType& type, std::string_view name) {
  constexpr std::string_view kPrefix = "tensor(", kSuffix = ")";
  if (!type.is_tensor()) return type.TypeName() == name;
  return name.starts_with(kPrefix) && name.ends_with(kSuffix) &&
         name.substr(kPrefix.size(), name.size() - kPrefix.size() - kSuffix.size()) ==
             DataTypeName(type.element_type);
}

bool Takes(const OpSchema& schema, size_t i, const ValueType& type) {
  const OpFormal* const formal = FormalOf(schema, i);
  if (formal == nullptr) return true;
  const OpTypeConstraint* const constraint = schema.FindConstraint(formal->type);
  if (constraint == nullptr) return IsNamed(type, formal->type);
  return Allows(*constraint, type) || AllowsAnyFloat(schema, *constraint, type);
}

// `schema` and, if it is of the table of schemas, the later ones of its operator.
std::span<const OpSchema> VersionsSince(const OpSchema& schema) {
  const std::span<const OpSchema> all = AllSchemas();
  const OpSchema* const end = all.data() + all.size();
  const bool is_in_table = !std::less<>()(&schema, all.data()) && std::less<>()(&schema, end);
  const OpSchema* last = &schema + 1;
  while (is_in_table && last != end && last->name == schema.name && last->domain == schema.domain) {
    ++last;
  }
  return {&schema, last};
}

bool TakesNowOrLater(const OpSchema& schema, size_t i, const ValueType& type) {
  if (Takes(schema, i, type)) return true;
  const std::span<const OpSchema> versions = VersionsSince(schema);
  return std::any_of(versions.begin(), versions.end(),
                     [&](const OpSchema& version) { return Takes(version, i, type); });
}

// "tensor(float), tensor(double)"
std::string TypesOf(const OpSchema& schema, const OpFormal& formal) {
  const OpTypeConstraint* const constraint = schema.FindConstraint(formal.type);
  if (constraint == nullptr) return std::string(formal.type);
  std::vector<std::string> names;
  for (int number = 1; number < kDataTypeCount; ++number) {
    const auto type = static_cast<DataType>(number);
    if (constraint->tensors.Contains(type)) names.push_back(ValueType::Tensor(type).TypeName());
  }
  for (int number = 1; number < kDataTypeCount; ++number) {
    const auto type = static_cast<DataType>(number);
    if (!constraint->sequences.Contains(type)) continue;
    names.push_back(ValueType::Sequence(ValueType::Tensor(type)).TypeName());
  }
  for (int number = 1; number < kDataTypeCount; ++number) {
    const auto type = static_cast<DataType>(number);
    if (!constraint->sparse_tensors.Contains(type)) continue;
    names.push_back(Format("sparse_tensor({})", DataTypeName(type)));
  }
  names.insert(names.end(), constraint->others.begin(), constraint->others.end());
  return JoinNames(names, 16);
}

// Whether inputs `i` and `k` must have one type in this version and in all later ones.
bool ShareConstraint(const OpSchema& schema, size_t i, size_t k) {
  const std::span<const OpSchema> versions = VersionsSince(schema);
  return std::all_of(versions.begin(), versions.end(), [&](const OpSchema& version) {
    const OpFormal *const a = FormalOf(version, i), *const b = FormalOf(version, k);
    return a != nullptr && b != nullptr && a->type == b->type;
  });
}

// The first known input that shares the type constraint of input `i`; `i` if there is none before.
size_t FirstOfConstraint(const Graph& graph, const Node& node, size_t i) {
  const OpFormal& formal = *FormalOf(*node.schema, i);
  if (formal.kind == FormalKind::kVariadic && !formal.homogeneous) return i;
  if (node.schema->FindConstraint(formal.type) == nullptr) return i;
  for (size_t k = 0; k < i; ++k) {
    if (node.has_input(k) && IsKnown(graph.value(node.inputs[k]).type) &&
        ShareConstraint(*node.schema, i, k)) {
      return k;
    }
  }
  return i;
}

// Whether two known types have one name.
bool IsSameBesidesShape(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind) return false;
  return a.kind == Value::Kind::kSequence ? IsSameBesidesShape(*a.held, *b.held)
                                          : a.element_type == b.element_type;
}

}  // namespace

Status CheckTypes(const Graph& graph, const Node& node) {
  if (node.schema == nullptr) return OkStatus();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const OpFormal* const formal = FormalOf(*node.schema, i);
    if (formal == nullptr) continue;
    if (!node.has_input(i)) {
      if (formal->kind != FormalKind::kSingle) continue;
      return InvalidGraph("input {} is required and missing", i);
    }
    const ValueType& type = graph.value(node.inputs[i]).type;
    if (!IsKnown(type)) continue;
    if (!TakesNowOrLater(*node.schema, i, type)) {
      return InvalidGraph("input {}: expected one of {}, got {}", i, TypesOf(*node.schema, *formal),
                          type.TypeName());
    }
    const size_t first = FirstOfConstraint(graph, node, i);
    const ValueType& other = graph.value(node.inputs[first]).type;
    if (!IsSameBesidesShape(other, type)) {
      return InvalidGraph("input {}: expected {} as input {}, got {}", i, other.TypeName(), first,
                          type.TypeName());
    }
  }
  return OkStatus();
}

}  // namespace tenon
