#include "ops/control/subgraphs.h"

#include <algorithm>
#include <cstring>

#include "ops/framework/narrow_types.h"

namespace tenon {
namespace {

// Of a tensor, or of the tensors in a container; kUndefined if that is unknown.
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

void CopyElements(const Tensor& from, int64_t from_first, int64_t count, Tensor& into,
                  int64_t first) {
  const DataType type = from.type();
  const size_t bits = DataTypeBits(type);
  if (type == DataType::kString) {
    std::copy_n(from.data<std::string>() + from_first, count, into.data<std::string>() + first);
  } else if (IsSubByte(type)) {
    const auto* source = static_cast<const uint8_t*>(from.raw());
    auto* target = static_cast<uint8_t*>(into.raw());
    for (int64_t i = 0; i < count; ++i) {
      PackBits(target, static_cast<size_t>(first + i), bits,
               UnpackBits(source, static_cast<size_t>(from_first + i), bits));
    }
  } else if (count > 0) {
    const size_t item = bits / 8;
    std::memcpy(static_cast<char*>(into.raw()) + static_cast<size_t>(first) * item,
                static_cast<const char*>(from.raw()) + static_cast<size_t>(from_first) * item,
                static_cast<size_t>(count) * item);
  }
}

void CopyElements(const Tensor& from, int64_t first, Tensor& into) {
  CopyElements(from, 0, from.size(), into, first);
}

Result<Tensor> ElementsFrom(const Tensor& from, int64_t first, const Shape& shape) {
  const size_t first_bit = static_cast<size_t>(first) * DataTypeBits(from.type());
  if (first_bit % 8 == 0) {
    auto* start = static_cast<const char*>(from.raw()) + first_bit / 8;
    return Tensor::View(from.type(), shape, const_cast<char*>(start), from.owner());
  }
  TENON_ASSIGN_OR_RETURN(Tensor copy, Tensor::Allocate(from.type(), shape));
  CopyElements(from, first, copy.size(), copy, 0);
  return copy;
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
