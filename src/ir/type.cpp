#include "ir/type.h"

#include <utility>

namespace tenon {
namespace {

// The more specific of two dimensions; a named symbol has precedence over an expression without a
// name.
Result<Dim> MergeDims(const Dim& a, const Dim& b) {
  if (a.is_number() && b.is_number() && a.value() != b.value()) {
    return InvalidArgument("{} contradicts {}", a, b);
  }
  if (a.is_number()) return a;
  if (b.is_number()) return b;
  return a.is_unknown() ? b : a;
}

Result<SymbolicShape> MergeShapes(const SymbolicShape& a, const SymbolicShape& b) {
  if (a.rank() != b.rank()) {
    return InvalidArgument("shape {} contradicts shape {}", a, b);
  }
  SymbolicShape merged;
  for (size_t i = 0; i < a.rank(); ++i) {
    Result<Dim> dim = MergeDims(a[i], b[i]);
    if (!dim) return InvalidArgument("shape {} contradicts shape {}", a, b);
    merged.Append(*dim);
  }
  return merged;
}

}  // namespace

ValueType ValueType::Tensor(DataType element_type, std::optional<SymbolicShape> shape) {
  return {Value::Kind::kTensor, element_type, std::move(shape), nullptr, ""};
}
ValueType ValueType::Sequence(ValueType held) {
  return {Value::Kind::kSequence, DataType::kUndefined, std::nullopt,
          std::make_shared<const ValueType>(std::move(held)), ""};
}
ValueType ValueType::Optional(ValueType held) {
  return {Value::Kind::kOptional, DataType::kUndefined, std::nullopt,
          std::make_shared<const ValueType>(std::move(held)), ""};
}
ValueType ValueType::Map(DataType key, ValueType held) {
  return {Value::Kind::kMap, key, std::nullopt, std::make_shared<const ValueType>(std::move(held)),
          ""};
}

ValueType ValueType::Of(const tenon::Value& value) {
  switch (value.kind()) {
    case Value::Kind::kTensor:
      return Tensor(value.tensor().type(), SymbolicShape(value.tensor().shape()));
    case Value::Kind::kSparseTensor: {
      ValueType type = Tensor(value.sparse().values.type(), value.sparse().dense_shape);
      type.kind = Value::Kind::kSparseTensor;
      return type;
    }
    case Value::Kind::kSequence: {
      const tenon::Sequence& sequence = value.sequence();
      if (sequence.element_type != DataType::kUndefined || sequence.elements.empty()) {
        return Sequence(Tensor(sequence.element_type));
      }
      return Sequence(Of(sequence.elements[0]));
    }
    case Value::Kind::kMap:
      return Map(value.map().keys.type(), Tensor(value.map().values.type()));
    case Value::Kind::kOptional:
      return Optional(Of(value.optional().value));
    case Value::Kind::kOpaque: {
      ValueType type;
      type.kind = Value::Kind::kOpaque;
      return type;
    }
    case Value::Kind::kNone:
      break;
  }
  return {};
}

std::string ValueType::TypeName() const {
  const std::string inner = held ? held->TypeName() : std::string("?");
  switch (kind) {
    case Value::Kind::kTensor:
      return Format("tensor({})", DataTypeName(element_type));
    case Value::Kind::kSparseTensor:
      return Format("sparse_tensor({})", DataTypeName(element_type));
    case Value::Kind::kSequence:
      return Format("seq({})", inner);
    case Value::Kind::kOptional:
      return Format("optional({})", inner);
    case Value::Kind::kMap:
      return Format("map({},{})", DataTypeName(element_type), inner);
    case Value::Kind::kOpaque:
      return "opaque";
    default:
      return "unknown";
  }
}

std::string ValueType::ToString() const {
  return shape ? Format("{} {}", TypeName(), *shape) : TypeName();
}

Result<ValueType> MergeTypes(const ValueType& a, const ValueType& b) {
  if (a.kind == Value::Kind::kNone) return b;
  if (b.kind == Value::Kind::kNone) return a;
  const auto contradiction = [&] {
    return InvalidArgument("{} contradicts {}", a.ToString(), b.ToString());
  };
  if (a.kind != b.kind) return contradiction();
  ValueType merged = a;
  if (a.element_type == DataType::kUndefined) {
    merged.element_type = b.element_type;
  } else if (b.element_type != DataType::kUndefined && a.element_type != b.element_type) {
    return contradiction();
  }
  if (a.shape && b.shape) {
    TENON_ASSIGN_OR_RETURN(merged.shape, MergeShapes(*a.shape, *b.shape));
  } else if (b.shape) {
    merged.shape = b.shape;
  }
  if (a.held && b.held) {
    TENON_ASSIGN_OR_RETURN(ValueType held, MergeTypes(*a.held, *b.held));
    merged.held = std::make_shared<const ValueType>(std::move(held));
  } else if (b.held) {
    merged.held = b.held;
  }
  if (merged.denotation.empty()) merged.denotation = b.denotation;
  if (merged.dim_denotations.empty()) merged.dim_denotations = b.dim_denotations;
  return merged;
}

ValueType CommonType(const ValueType& a, const ValueType& b) {
  if (a.kind != b.kind) return {};
  ValueType common;
  common.kind = a.kind;
  if (a.element_type == b.element_type) common.element_type = a.element_type;
  if (a.shape && b.shape && a.shape->rank() == b.shape->rank()) {
    common.shape = a.shape;
    for (size_t i = 0; i < a.shape->rank(); ++i) {
      if (!((*a.shape)[i] == (*b.shape)[i])) (*common.shape)[i] = Dim::Unknown();
    }
  }
  if (a.held && b.held) {
    common.held = std::make_shared<const ValueType>(CommonType(*a.held, *b.held));
  }
  return common;
}

}  // namespace tenon
