#include "ir/output_types.h"

#include "ir/schema.h"

namespace tenon {
namespace {

const OpFormal* FormalAt(std::span<const OpFormal> formals, size_t i) {
  if (i < formals.size()) return &formals[i];
  if (!formals.empty() && formals.back().kind == FormalKind::kVariadic) return &formals.back();
  return nullptr;
}

// "tensor(float)" and "seq(tensor(int64))"; kNone for a constraint's name or any other spelling.
ValueType ParseTypeName(std::string_view text) {
  const auto inside = [&](std::string_view prefix) -> std::string_view {
    if (!text.starts_with(prefix) || !text.ends_with(")")) return {};
    return text.substr(prefix.size(), text.size() - prefix.size() - 1);
  };
  if (const auto element = inside("tensor("); !element.empty()) {
    return ValueType::Tensor(DataTypeFromName(element));
  }
  if (const auto held = inside("seq("); !held.empty()) {
    return ValueType::Sequence(ParseTypeName(held));
  }
  if (const auto held = inside("optional("); !held.empty()) {
    return ValueType::Optional(ParseTypeName(held));
  }
  return {};
}

// The type of a constraint that allows one element type only.
ValueType OnlyType(const OpSchema& schema, std::string_view constraint_name) {
  for (const OpTypeConstraint& constraint : schema.constraints) {
    if (constraint.name != constraint_name) continue;
    for (int i = 1; i < kDataTypeCount; ++i) {
      const auto type = static_cast<DataType>(i);
      if (constraint.tensors == TypeSet{type} && constraint.others.empty()) {
        return ValueType::Tensor(type);
      }
    }
  }
  return {};
}

ValueType DerivedType(const Graph& graph, const Node& node, const OpFormal& output) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const OpFormal* input = FormalAt(node.schema->inputs, i);
    if (!node.has_input(i) || !input || input->type != output.type || !input->homogeneous) continue;
    const ValueType& type = graph.value(node.inputs[i]).type;
    if (type.kind != Value::Kind::kNone) return {type.kind, type.element_type, {}, type.held, ""};
  }
  ValueType literal = ParseTypeName(output.type);
  return literal.kind != Value::Kind::kNone ? literal : OnlyType(*node.schema, output.type);
}

}  // namespace

void SetOutputTypes(Graph& graph, const Node& node) {
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.has_output(i)) continue;
    ValueType& type = graph.value(node.outputs[i]).type;
    const bool is_known = type.kind != Value::Kind::kNone &&
                          (!type.is_tensor() || type.element_type != DataType::kUndefined);
    if (is_known) continue;
    ValueType derived;
    if (node.schema == nullptr) {
      if (node.has_input(0)) derived = graph.value(node.inputs[0]).type;
      derived.shape.reset();
    } else if (const OpFormal* formal = FormalAt(node.schema->outputs, i)) {
      derived = DerivedType(graph, node, *formal);
    }
    if (derived.kind == Value::Kind::kNone) continue;
    derived.shape = type.shape;
    type = std::move(derived);
  }
}

}  // namespace tenon
