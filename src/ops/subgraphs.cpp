#include "ops/subgraphs.h"

#include <algorithm>
#include <cstring>

namespace tenon {
namespace {

// `bits` divides 8; elements fill bytes from the lowest bits on.
void CopyPacked(const uint8_t* from, int64_t count, int64_t first, size_t bits, uint8_t* into) {
  const auto per_byte = static_cast<int64_t>(8 / bits);
  const auto mask = static_cast<unsigned>((1 << bits) - 1);
  for (int64_t i = 0; i < count; ++i) {
    const size_t shift_from = static_cast<size_t>(i % per_byte) * bits;
    const size_t shift_into = static_cast<size_t>((first + i) % per_byte) * bits;
    uint8_t& byte = into[(first + i) / per_byte];
    const unsigned element = (from[i / per_byte] >> shift_from) & mask;
    byte = static_cast<uint8_t>((byte & ~(mask << shift_into)) | (element << shift_into));
  }
}

// Of a tensor, or of the tensors that are held; kUndefined if that is not known.
DataType ElementsOf(const ValueType& type) {
  if (type.is_tensor()) return type.element_type;
  const bool holds = type.kind == Value::Kind::kSequence || type.kind == Value::Kind::kOptional;
  return holds && type.held ? ElementsOf(*type.held) : DataType::kUndefined;
}

}  // namespace

Result<size_t> SubgraphIndex(const Node& node, std::string_view attribute) {
  size_t index = 0;
  for (const Attribute& held : node.attributes) {
    if (held.name == attribute && held.type() == AttributeType::kGraph) return index;
    if (held.type() == AttributeType::kGraph) ++index;
    if (const auto* graphs = held.get<std::vector<std::unique_ptr<Graph>>>()) {
      index += graphs->size();
    }
  }
  return InvalidArgument("attribute '{}' is required and missing", attribute);
}

Result<bool> ConditionOf(const Tensor& condition) {
  if (condition.type() != DataType::kBool || condition.size() != 1) {
    return InvalidArgument("expected a condition of one bool, got {} {}",
                           DataTypeName(condition.type()), condition.shape());
  }
  return *static_cast<const uint8_t*>(condition.raw()) != 0;
}

ValueType WithoutShapes(const ValueType& type) {
  ValueType result = type;
  result.shape.reset();
  if (type.held) result.held = std::make_shared<const ValueType>(WithoutShapes(*type.held));
  return result;
}

Result<ValueType> JoinTypes(const ValueType& a, const ValueType& b, size_t output) {
  const DataType first = ElementsOf(a), second = ElementsOf(b);
  if (first != second && first != DataType::kUndefined && second != DataType::kUndefined) {
    return InvalidArgument("output {}: expected one type, got {} and {}", output, a.TypeName(),
                           b.TypeName());
  }
  return CommonType(a, b);
}

void CopyElements(const Tensor& from, int64_t first, Tensor& into) {
  const DataType type = from.type();
  if (type == DataType::kString) {
    std::copy_n(from.data<std::string>(), from.size(), into.data<std::string>() + first);
  } else if (IsSubByte(type)) {
    CopyPacked(static_cast<const uint8_t*>(from.raw()), from.size(), first, DataTypeBits(type),
               static_cast<uint8_t*>(into.raw()));
  } else if (from.bytes() > 0) {
    const size_t offset = static_cast<size_t>(first) * (DataTypeBits(type) / 8);
    std::memcpy(static_cast<char*>(into.raw()) + offset, from.raw(), from.bytes());
  }
}

Status CheckSameAs(const Tensor& first, const Value& part, size_t output) {
  if (!part.is_tensor()) {
    return InvalidArgument("output {}: expected a tensor from each iteration, got a {}", output,
                           ValueKindName(part.kind()));
  }
  const Tensor& tensor = part.tensor();
  if (tensor.type() != first.type() || !(tensor.shape() == first.shape())) {
    return InvalidArgument("output {}: expected {} {} from each iteration, got {} {}", output,
                           DataTypeName(first.type()), first.shape(), DataTypeName(tensor.type()),
                           tensor.shape());
  }
  return OkStatus();
}

Shape EmptyShape(const ValueType& type, size_t axis) {
  Shape shape;
  const size_t rank = type.shape ? type.shape->rank() : axis + 1;
  for (size_t i = 0; i < rank; ++i) {
    shape.Append(type.shape && i != axis ? (*type.shape)[i].number().value_or(0) : 0);
  }
  return shape;
}

}  // namespace tenon
