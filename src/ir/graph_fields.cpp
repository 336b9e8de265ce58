#include "ir/graph_reader.h"
#include "ir/onnx_fields.h"
#include "ir/type_reader.h"

namespace tenon {
namespace {

QuantizationAnnotation ReadAnnotation(std::string_view bytes, WireErrors& errors) {
  QuantizationAnnotation annotation;
  WireReader reader("TensorAnnotation", bytes, errors);
  while (reader.Next()) {
    if (reader.field<AnnotationField>() == AnnotationField::kTensorName) {
      annotation.tensor_name = reader.Bytes();
    } else if (reader.field<AnnotationField>() == AnnotationField::kQuantParameterTensorNames) {
      annotation.quant_parameter_tensor_names.insert(ReadEntry(reader.Bytes(), errors));
    }
  }
  return annotation;
}

}  // namespace

Result<ValueDeclaration> ReadValueInfo(std::string_view bytes, WireErrors& errors) {
  ValueDeclaration value;
  std::string_view type;
  WireReader reader("ValueInfoProto", bytes, errors);
  while (reader.Next()) {
    switch (reader.field<ValueInfoField>()) {
      case ValueInfoField::kName:
        value.name = reader.Bytes();
        break;
      case ValueInfoField::kType:
        type = reader.Bytes();
        break;
      case ValueInfoField::kDocString:
        value.doc_string = reader.Bytes();
        break;
      case ValueInfoField::kMetadata:
        value.metadata.insert(ReadEntry(reader.Bytes(), errors));
        break;
    }
  }
  TENON_RETURN_IF_ERROR(reader.status());
  Result<ValueType> parsed = ReadTypeProto(type, errors);
  if (!parsed) {
    return Error(std::move(parsed.error()).WithContext(Format("value '{}'", value.name)));
  }
  value.type = std::move(*parsed);
  return value;
}

Result<GraphFields> ReadGraphFields(std::string_view bytes, ReadContext& context) {
  GraphFields fields;
  WireReader reader("GraphProto", bytes, context.errors);
  const auto declare = [&](std::vector<ValueDeclaration>& values) -> Status {
    TENON_ASSIGN_OR_RETURN(ValueDeclaration value, ReadValueInfo(reader.Bytes(), context.errors));
    values.push_back(std::move(value));
    return OkStatus();
  };
  while (reader.Next()) {
    switch (reader.field<GraphField>()) {
      case GraphField::kNode:
        fields.nodes.push_back(reader.Bytes());
        break;
      case GraphField::kName:
        fields.name = reader.Bytes();
        break;
      case GraphField::kInitializer:
        fields.initializers.push_back(reader.Bytes());
        break;
      case GraphField::kSparseInitializer:
        fields.sparse_initializers.push_back(reader.Bytes());
        break;
      case GraphField::kDocString:
        fields.doc_string = reader.Bytes();
        break;
      case GraphField::kInput:
        TENON_RETURN_IF_ERROR(declare(fields.inputs));
        break;
      case GraphField::kOutput:
        TENON_RETURN_IF_ERROR(declare(fields.outputs));
        break;
      case GraphField::kValueInfo:
        fields.value_infos.push_back(reader.Bytes());
        break;
      case GraphField::kQuantizationAnnotation:
        fields.quantization_annotations.push_back(ReadAnnotation(reader.Bytes(), context.errors));
        break;
      case GraphField::kMetadata:
        fields.metadata.insert(ReadEntry(reader.Bytes(), context.errors));
        break;
    }
  }
  TENON_RETURN_IF_ERROR(reader.status());
  return fields;
}

}  // namespace tenon
