#include "ir/type_reader.h"

#include "ir/onnx_fields.h"

namespace tenon {
namespace {

// Protobuf itself reads no message nested deeper than 100, and a type takes two levels.
constexpr int kMaxTypeDepth = 50;

Result<ValueType> ReadType(std::string_view bytes, WireErrors& errors, int depth);

Result<DataType> ElementType(int64_t number) {
  if (number == 0) return DataType::kUndefined;
  if (!IsDataType(number)) return InvalidGraph("{} is not the number of an element type", number);
  return static_cast<DataType>(number);
}

Dim ReadDim(std::string_view bytes, WireErrors& errors, std::string& denotation) {
  Dim dim = Dim::Unknown();
  WireReader reader("TensorShapeProto.Dimension", bytes, errors);
  while (reader.Next()) {
    if (reader.field<DimField>() == DimField::kValue) {
      const int64_t value = reader.Int();
      dim = value >= 0 ? Dim(value) : Dim::Unknown();
    } else if (reader.field<DimField>() == DimField::kParam) {
      const std::string_view name = reader.Bytes();
      dim = name.empty() ? Dim::Unknown() : Dim::Symbol(std::string(name));
    } else if (reader.field<DimField>() == DimField::kDenotation) {
      denotation = reader.Bytes();
    }
  }
  return dim;
}

SymbolicShape ReadShape(std::string_view bytes, WireErrors& errors,
                        std::vector<std::string>& denotations) {
  SymbolicShape shape;
  denotations.clear();
  WireReader reader("TensorShapeProto", bytes, errors);
  while (reader.Next()) {
    if (reader.field<ShapeField>() == ShapeField::kDim) {
      std::string denotation;
      shape.Append(ReadDim(reader.Bytes(), errors, denotation));
      if (denotation.empty() && denotations.empty()) continue;
      denotations.resize(shape.rank() - 1);
      denotations.push_back(std::move(denotation));
    }
  }
  if (!denotations.empty()) denotations.resize(shape.rank());
  return shape;
}

Result<ValueType> ReadTensorType(Value::Kind kind, std::string_view bytes, WireErrors& errors) {
  int64_t number = 0;
  std::optional<SymbolicShape> shape;
  std::vector<std::string> denotations;
  WireReader reader("TypeProto.Tensor", bytes, errors);
  while (reader.Next()) {
    if (reader.field<TensorTypeField>() == TensorTypeField::kElementType) {
      number = reader.Int();
    } else if (reader.field<TensorTypeField>() == TensorTypeField::kShape) {
      shape = ReadShape(reader.Bytes(), errors, denotations);
    }
  }
  TENON_ASSIGN_OR_RETURN(const DataType element_type, ElementType(number));
  ValueType type = ValueType::Tensor(element_type, std::move(shape));
  type.kind = kind;
  type.dim_denotations = std::move(denotations);
  return type;
}

Result<ValueType> ReadHolderType(std::string_view bytes, WireErrors& errors, int depth) {
  std::string_view held;
  WireReader reader("TypeProto.Sequence", bytes, errors);
  while (reader.Next()) {
    if (reader.field<HolderTypeField>() == HolderTypeField::kElementType) held = reader.Bytes();
  }
  return ReadType(held, errors, depth);
}

Result<ValueType> ReadMapType(std::string_view bytes, WireErrors& errors, int depth) {
  int64_t key = 0;
  std::string_view held;
  WireReader reader("TypeProto.Map", bytes, errors);
  while (reader.Next()) {
    if (reader.field<MapTypeField>() == MapTypeField::kKeyType) {
      key = reader.Int();
    } else if (reader.field<MapTypeField>() == MapTypeField::kValueType) {
      held = reader.Bytes();
    }
  }
  TENON_ASSIGN_OR_RETURN(const DataType key_type, ElementType(key));
  TENON_ASSIGN_OR_RETURN(ValueType held_type, ReadType(held, errors, depth));
  return ValueType::Map(key_type, std::move(held_type));
}

// The type that field `field` of a TypeProto describes.
Result<ValueType> ReadForm(TypeField field, std::string_view bytes, WireErrors& errors, int depth) {
  switch (field) {
    case TypeField::kTensor:
      return ReadTensorType(Value::Kind::kTensor, bytes, errors);
    case TypeField::kSparseTensor:
      return ReadTensorType(Value::Kind::kSparseTensor, bytes, errors);
    case TypeField::kMap:
      return ReadMapType(bytes, errors, depth);
    case TypeField::kOpaque:
      return NotImplemented("opaque types");
    default: {
      TENON_ASSIGN_OR_RETURN(ValueType held, ReadHolderType(bytes, errors, depth));
      return field == TypeField::kSequence ? ValueType::Sequence(std::move(held))
                                           : ValueType::Optional(std::move(held));
    }
  }
}

Result<ValueType> ReadType(std::string_view bytes, WireErrors& errors, int depth) {
  if (depth > kMaxTypeDepth) {
    return InvalidGraph("a type is nested more than {} levels deep", kMaxTypeDepth);
  }
  ValueType type;
  std::string denotation;
  WireReader reader("TypeProto", bytes, errors);
  while (reader.Next()) {
    switch (const auto field = reader.field<TypeField>()) {
      case TypeField::kDenotation:
        denotation = reader.Bytes();
        break;
      case TypeField::kTensor:
      case TypeField::kSparseTensor:
      case TypeField::kSequence:
      case TypeField::kOptional:
      case TypeField::kMap:
      case TypeField::kOpaque: {
        TENON_ASSIGN_OR_RETURN(type, ReadForm(field, reader.Bytes(), errors, depth + 1));
        break;
      }
    }
  }
  TENON_RETURN_IF_ERROR(reader.status());
  type.denotation = std::move(denotation);
  return type;
}

}  // namespace

Result<ValueType> ReadTypeProto(std::string_view bytes, WireErrors& errors) {
  return ReadType(bytes, errors, 0);
}

}  // namespace tenon
