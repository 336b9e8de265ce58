#include "ir/attribute_reader.h"

#include <optional>

#include "ir/graph.h"
#include "ir/onnx_fields.h"
#include "ir/tensor_reader.h"
#include "ir/type_reader.h"

namespace tenon {
namespace {

// The values of every field of an AttributeProto; messages are still serialized.
struct AttributeFields {
  int64_t type_number = 0;  // as declared
  float float_value = 0;
  int64_t int_value = 0;
  std::string_view string_value;
  std::vector<float> floats;
  std::vector<int64_t> ints;
  std::vector<std::string> strings;
  // Of the types that are messages, by the type of the list or single value.
  std::vector<std::string_view> messages;
  // The type of the value that is present; mixed if there are several.
  AttributeType found = AttributeType::kUndefined;
  bool mixed = false;
  // The type of the last field that was present, whatever its value.
  AttributeType mentioned = AttributeType::kUndefined;

  void Found(AttributeType type_of_field) {
    mixed |= found != AttributeType::kUndefined && found != type_of_field;
    found = type_of_field;
  }
};

// The type whose values a field holds; kUndefined if the field holds none.
AttributeType TypeOfField(AttributeField field) {
  switch (field) {
    case AttributeField::kFloat:
      return AttributeType::kFloat;
    case AttributeField::kInt:
      return AttributeType::kInt;
    case AttributeField::kString:
      return AttributeType::kString;
    case AttributeField::kTensor:
      return AttributeType::kTensor;
    case AttributeField::kGraph:
      return AttributeType::kGraph;
    case AttributeField::kSparseTensor:
      return AttributeType::kSparseTensor;
    case AttributeField::kTypeProto:
      return AttributeType::kTypeProto;
    case AttributeField::kFloats:
      return AttributeType::kFloats;
    case AttributeField::kInts:
      return AttributeType::kInts;
    case AttributeField::kStrings:
      return AttributeType::kStrings;
    case AttributeField::kTensors:
      return AttributeType::kTensors;
    case AttributeField::kGraphs:
      return AttributeType::kGraphs;
    case AttributeField::kSparseTensors:
      return AttributeType::kSparseTensors;
    case AttributeField::kTypeProtos:
      return AttributeType::kTypeProtos;
    default:
      return AttributeType::kUndefined;
  }
}

// Takes the value of a field of `type`. Some exporters write a zero into unused single-valued
// fields, so a zero there does not count as found.
void TakeValue(AttributeType type, WireReader& reader, AttributeFields& fields) {
  bool says_something = true;
  switch (type) {
    case AttributeType::kFloat:
      fields.float_value = reader.Float();
      says_something = fields.float_value != 0;
      break;
    case AttributeType::kInt:
      fields.int_value = reader.Int();
      says_something = fields.int_value != 0;
      break;
    case AttributeType::kString:
      fields.string_value = reader.Bytes();
      says_something = !fields.string_value.empty();
      break;
    case AttributeType::kFloats:
      reader.Floats([&](float value) { fields.floats.push_back(value); });
      break;
    case AttributeType::kInts:
      reader.Ints([&](int64_t value) { fields.ints.push_back(value); });
      break;
    case AttributeType::kStrings:
      fields.strings.emplace_back(reader.Bytes());
      break;
    default:
      fields.messages.push_back(reader.Bytes());
  }
  if (says_something) fields.Found(type);
}

AttributeFields ReadFields(std::string_view bytes, ReadContext& context, Attribute& attribute) {
  AttributeFields fields;
  WireReader reader("AttributeProto", bytes, context.errors);
  while (reader.Next()) {
    switch (const auto field = reader.field<AttributeField>()) {
      case AttributeField::kName:
        attribute.name = reader.Bytes();
        break;
      case AttributeField::kReference:
        attribute.reference = reader.Bytes();
        break;
      case AttributeField::kDocString:
        attribute.doc_string = reader.Bytes();
        break;
      case AttributeField::kType:
        fields.type_number = reader.Int();
        break;
      default:
        if (const AttributeType type = TypeOfField(field); type != AttributeType::kUndefined) {
          fields.mentioned = type;
          TakeValue(type, reader, fields);
        }
    }
  }
  return fields;
}

// The single message of an attribute that holds a tensor, graph, sparse tensor or type.
Result<std::string_view> OnlyMessage(const AttributeFields& fields, AttributeType type) {
  if (fields.messages.size() == 1) return fields.messages[0];
  return InvalidGraph("expected one value of type {}, got {}", AttributeTypeName(type),
                      fields.messages.size());
}

Result<Tensor> ReadTensorValue(std::string_view bytes, ReadContext& context) {
  TENON_ASSIGN_OR_RETURN(NamedTensor named, ReadTensorProto(bytes, context));
  return std::move(named.tensor);
}

Result<std::shared_ptr<SparseTensor>> ReadSparseValue(std::string_view bytes,
                                                      ReadContext& context) {
  TENON_ASSIGN_OR_RETURN(NamedSparseTensor named, ReadSparseTensorProto(bytes, context));
  return std::move(named.tensor);
}

template <class Read>
Result<Attribute::Held> ReadOne(const AttributeFields& fields, AttributeType type, Read read) {
  TENON_ASSIGN_OR_RETURN(const std::string_view message, OnlyMessage(fields, type));
  TENON_ASSIGN_OR_RETURN(auto value, read(message));
  return Attribute::Held(std::move(value));
}

template <class T, class Read>
Result<Attribute::Held> ReadList(const AttributeFields& fields, Read read) {
  std::vector<T> values;
  values.reserve(fields.messages.size());
  for (const std::string_view message : fields.messages) {
    TENON_ASSIGN_OR_RETURN(T value, read(message));
    values.push_back(std::move(value));
  }
  return Attribute::Held(std::move(values));
}

Result<Attribute::Held> ReadHeld(AttributeType type, AttributeFields& fields,
                                 const SubgraphReader& read_subgraph, ReadContext& context) {
  const auto tensor = [&](std::string_view bytes) { return ReadTensorValue(bytes, context); };
  const auto sparse = [&](std::string_view bytes) { return ReadSparseValue(bytes, context); };
  const auto value_type = [&](std::string_view bytes) {
    return ReadTypeProto(bytes, context.errors);
  };
  switch (type) {
    case AttributeType::kFloat:
      return Attribute::Held(fields.float_value);
    case AttributeType::kInt:
      return Attribute::Held(fields.int_value);
    case AttributeType::kString:
      return Attribute::Held(std::string(fields.string_value));
    case AttributeType::kFloats:
      return Attribute::Held(std::move(fields.floats));
    case AttributeType::kInts:
      return Attribute::Held(std::move(fields.ints));
    case AttributeType::kStrings:
      return Attribute::Held(std::move(fields.strings));
    case AttributeType::kTensor:
      return ReadOne(fields, type, tensor);
    case AttributeType::kGraph:
      return ReadOne(fields, type, read_subgraph);
    case AttributeType::kSparseTensor:
      return ReadOne(fields, type, sparse);
    case AttributeType::kTypeProto:
      return ReadOne(fields, type, value_type);
    case AttributeType::kTensors:
      return ReadList<Tensor>(fields, tensor);
    case AttributeType::kGraphs:
      return ReadList<std::unique_ptr<Graph>>(fields, read_subgraph);
    case AttributeType::kSparseTensors:
      return ReadList<std::shared_ptr<SparseTensor>>(fields, sparse);
    case AttributeType::kTypeProtos:
      return ReadList<ValueType>(fields, value_type);
    case AttributeType::kUndefined:
      break;
  }
  return InvalidGraph("has neither a type nor a value");
}

Status ReadValue(AttributeFields& fields, bool allow_reference, const SubgraphReader& read_subgraph,
                 ReadContext& context, Attribute& attribute) {
  constexpr auto kLast = static_cast<int64_t>(AttributeType::kTypeProtos);
  if (fields.type_number < 0 || fields.type_number > kLast) {
    return InvalidGraph("{} is not the number of an attribute type", fields.type_number);
  }
  const auto declared = static_cast<AttributeType>(fields.type_number);
  if (!attribute.reference.empty()) {
    if (!allow_reference) {
      return InvalidGraph("refers to '{}', but only attributes in functions may refer to others",
                          attribute.reference);
    }
    attribute.referenced_type = declared;
    return OkStatus();
  }
  const bool fits = declared == AttributeType::kUndefined ||
                    fields.found == AttributeType::kUndefined || declared == fields.found;
  if (fields.mixed || !fits) {
    return InvalidGraph("expected a value of type {}, got one of type {}",
                        AttributeTypeName(declared), AttributeTypeName(fields.found));
  }
  AttributeType type = declared;
  if (type == AttributeType::kUndefined) type = fields.found;
  if (type == AttributeType::kUndefined) type = fields.mentioned;
  TENON_ASSIGN_OR_RETURN(attribute.held, ReadHeld(type, fields, read_subgraph, context));
  return OkStatus();
}

}  // namespace

Result<Attribute> ReadAttributeProto(std::string_view bytes, bool allow_reference,
                                     const SubgraphReader& read_subgraph, ReadContext& context) {
  Attribute attribute;
  AttributeFields fields = ReadFields(bytes, context, attribute);
  TENON_RETURN_IF_ERROR(context.errors.status());
  Status status = ReadValue(fields, allow_reference, read_subgraph, context, attribute);
  TENON_RETURN_IF_ERROR(context.errors.status());
  if (!status.ok()) {
    return Error(std::move(status).WithContext(Format("attribute '{}'", attribute.name)));
  }
  return attribute;
}

}  // namespace tenon
