#include "ir/constant_node.h"

namespace tenon {
namespace {

template <class T>
Tensor VectorOf(const std::vector<T>& values) {
  return Tensor::Of<T>({static_cast<int64_t>(values.size())}, std::span<const T>(values));
}

}  // namespace

bool IsConstantNode(const Node& node) {
  return node.op_type == "Constant" && node.domain.empty() && node.outputs.size() == 1;
}

void NormalizeConstantNode(Node& node) {
  if (node.op_type != "Constant" || !node.domain.empty() || node.attributes.size() != 1) return;
  Attribute& value = node.attributes[0];
  if (value.name != "value") return;
  switch (value.type()) {
    case AttributeType::kSparseTensor:
      value.name = "sparse_value";
      break;
    case AttributeType::kFloat:
      value.name = "value_float";
      break;
    case AttributeType::kFloats:
      value.name = "value_floats";
      break;
    case AttributeType::kInt:
      value.name = "value_int";
      break;
    case AttributeType::kInts:
      value.name = "value_ints";
      break;
    case AttributeType::kString:
      value.name = "value_string";
      break;
    case AttributeType::kStrings:
      value.name = "value_strings";
      break;
    default:
      break;
  }
}

Result<Value> ValueOfConstantNode(const Node& node) {
  if (node.attributes.size() != 1) {
    return InvalidArgument("expected one attribute with the value, got {}", node.attributes.size());
  }
  const Attribute& value = node.attributes[0];
  if (const auto* tensor = value.get<Tensor>()) return Value(*tensor);
  if (const auto* sparse = value.get<std::shared_ptr<SparseTensor>>()) return Value(*sparse);
  if (const auto* number = value.get<float>()) return Value(Tensor::Of<float>({}, {*number}));
  if (const auto* number = value.get<int64_t>()) return Value(Tensor::Of<int64_t>({}, {*number}));
  if (const auto* text = value.get<std::string>()) {
    return Value(Tensor::Of<std::string>({}, {*text}));
  }
  if (const auto* list = value.get<std::vector<float>>()) return Value(VectorOf(*list));
  if (const auto* list = value.get<std::vector<int64_t>>()) return Value(VectorOf(*list));
  if (const auto* list = value.get<std::vector<std::string>>()) return Value(VectorOf(*list));
  return InvalidArgument("attribute '{}': {} is no value of a constant", value.name,
                         AttributeTypeName(value.type()));
}

}  // namespace tenon
