#include "capi/model_builder.h"

namespace tenon::test {
namespace {

// Field numbers of onnx.proto.
enum Field : protozero::pbf_tag_type {
  kModelIrVersion = 1,
  kModelProducerName = 2,
  kModelProducerVersion = 3,
  kModelDomain = 4,
  kModelModelVersion = 5,
  kModelDocString = 6,
  kModelGraph = 7,
  kModelOpsetImport = 8,
  kModelMetadataProps = 14,
  kOpsetDomain = 1,
  kOpsetVersion = 2,
  kEntryKey = 1,
  kEntryValue = 2,
  kGraphNode = 1,
  kGraphName = 2,
  kGraphInitializer = 5,
  kGraphDocString = 10,
  kGraphInput = 11,
  kGraphOutput = 12,
  kNodeInput = 1,
  kNodeOutput = 2,
  kNodeName = 3,
  kNodeOpType = 4,
  kNodeAttribute = 5,
  kNodeDomain = 7,
  kAttributeName = 1,
  kAttributeInt = 3,
  kAttributeGraph = 6,
  kAttributeType = 20,
  kTensorDims = 1,
  kTensorDataType = 2,
  kTensorFloatData = 4,
  kTensorName = 8,
  kTensorExternalData = 13,
  kTensorDataLocation = 14,
  kValueName = 1,
  kValueType = 2,
  kTypeTensor = 1,
  kTypeSequence = 4,
  kTensorTypeElemType = 1,
  kTensorTypeShape = 2,
  kSequenceElemType = 1,
  kShapeDim = 1,
  kDimValue = 1,
  kDimParam = 2,
  kDimDenotation = 3,
};

std::string Value(std::string_view name, const std::string& type) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_string(kValueName, name.data(), name.size());
  writer.add_message(kValueType, type);
  return bytes;
}

std::string TypeWithShape(ONNXTensorElementDataType type, const std::string* shape) {
  std::string tensor, bytes;
  protozero::pbf_writer writer(tensor);
  writer.add_int32(kTensorTypeElemType, type);
  if (shape != nullptr) writer.add_message(kTensorTypeShape, *shape);
  protozero::pbf_writer(bytes).add_message(kTypeTensor, tensor);
  return bytes;
}

std::string NodeBytes(std::string_view op_type, std::initializer_list<std::string_view> inputs,
                      std::initializer_list<std::string_view> outputs) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  for (const std::string_view name : inputs) {
    writer.add_string(kNodeInput, name.data(), name.size());
  }
  for (const std::string_view name : outputs) {
    writer.add_string(kNodeOutput, name.data(), name.size());
  }
  writer.add_string(kNodeOpType, op_type.data(), op_type.size());
  return bytes;
}

void AddIntegers(std::initializer_list<IntAttribute> attributes, protozero::pbf_writer& node) {
  constexpr int kIntType = 2;
  for (const auto& [name, value] : attributes) {
    std::string attribute;
    protozero::pbf_writer writer(attribute);
    writer.add_string(kAttributeName, name.data(), name.size());
    writer.add_int64(kAttributeInt, value);
    writer.add_int32(kAttributeType, kIntType);
    node.add_message(kNodeAttribute, attribute);
  }
}

}  // namespace

std::string TensorType(ONNXTensorElementDataType type, std::initializer_list<DeclaredDim> dims) {
  std::string shape;
  for (const DeclaredDim& dim : dims) {
    std::string bytes;
    protozero::pbf_writer writer(bytes);
    if (dim.size >= 0) writer.add_int64(kDimValue, dim.size);
    if (!dim.symbol.empty()) writer.add_string(kDimParam, dim.symbol);
    if (!dim.denotation.empty()) writer.add_string(kDimDenotation, dim.denotation);
    protozero::pbf_writer(shape).add_message(kShapeDim, bytes);
  }
  return TypeWithShape(type, &shape);
}

std::string TensorTypeWithoutShape(ONNXTensorElementDataType type) {
  return TypeWithShape(type, nullptr);
}

std::string SequenceType(const std::string& element_type) {
  std::string sequence, bytes;
  protozero::pbf_writer(sequence).add_message(kSequenceElemType, element_type);
  protozero::pbf_writer(bytes).add_message(kTypeSequence, sequence);
  return bytes;
}

ModelBuilder& ModelBuilder::Input(std::string_view name, const std::string& type) {
  protozero::pbf_writer(graph_).add_message(kGraphInput, Value(name, type));
  return *this;
}

ModelBuilder& ModelBuilder::Output(std::string_view name, const std::string& type) {
  protozero::pbf_writer(graph_).add_message(kGraphOutput, Value(name, type));
  return *this;
}

ModelBuilder& ModelBuilder::Node(std::string_view op_type,
                                 std::initializer_list<std::string_view> inputs,
                                 std::initializer_list<std::string_view> outputs) {
  protozero::pbf_writer(graph_).add_message(kGraphNode, NodeBytes(op_type, inputs, outputs));
  return *this;
}

ModelBuilder& ModelBuilder::CustomNode(std::string_view domain, std::string_view op_type,
                                       std::initializer_list<std::string_view> inputs,
                                       std::initializer_list<std::string_view> outputs,
                                       std::initializer_list<IntAttribute> attributes) {
  std::string bytes = NodeBytes(op_type, inputs, outputs);
  protozero::pbf_writer writer(bytes);
  writer.add_string(kNodeDomain, domain.data(), domain.size());
  AddIntegers(attributes, writer);
  protozero::pbf_writer(graph_).add_message(kGraphNode, bytes);
  if (!domain.empty()) domains_.emplace(domain);
  return *this;
}

ModelBuilder& ModelBuilder::UnimportedNode(std::string_view domain, std::string_view op_type,
                                           std::initializer_list<std::string_view> inputs,
                                           std::initializer_list<std::string_view> outputs) {
  std::string bytes = NodeBytes(op_type, inputs, outputs);
  protozero::pbf_writer(bytes).add_string(kNodeDomain, domain.data(), domain.size());
  protozero::pbf_writer(graph_).add_message(kGraphNode, bytes);
  return *this;
}

ModelBuilder& ModelBuilder::YieldNode(std::initializer_list<std::string_view> inputs,
                                      std::initializer_list<std::string_view> outputs) {
  constexpr std::string_view kDomain = "com.microsoft", kFullShapes = "full_shape_outputs";
  constexpr int kAttributeInts = 8, kIntsType = 7;
  std::string bytes = NodeBytes("YieldOp", inputs, outputs), attribute;
  protozero::pbf_writer full_shapes(attribute);
  full_shapes.add_string(kAttributeName, kFullShapes.data(), kFullShapes.size());
  for (size_t i = 0; i < outputs.size(); ++i) {
    full_shapes.add_int64(kAttributeInts, static_cast<int64_t>(i));
  }
  full_shapes.add_int32(kAttributeType, kIntsType);
  protozero::pbf_writer node(bytes);
  node.add_string(kNodeDomain, kDomain.data(), kDomain.size());
  node.add_message(kNodeAttribute, attribute);
  protozero::pbf_writer(graph_).add_message(kGraphNode, bytes);
  domains_.emplace(kDomain);
  return *this;
}

ModelBuilder& ModelBuilder::ControlNode(
    std::string_view op_type, std::initializer_list<std::string_view> inputs,
    std::initializer_list<std::string_view> outputs,
    std::initializer_list<std::pair<std::string_view, ModelBuilder>> graphs,
    std::initializer_list<IntAttribute> attributes) {
  constexpr int kGraphType = 5;
  std::string bytes = NodeBytes(op_type, inputs, outputs);
  protozero::pbf_writer writer(bytes);
  for (const auto& [name, body] : graphs) {
    std::string graph = body.graph_, attribute;
    protozero::pbf_writer(graph).add_string(kGraphName, name.data(), name.size());
    protozero::pbf_writer attribute_writer(attribute);
    attribute_writer.add_string(kAttributeName, name.data(), name.size());
    attribute_writer.add_message(kAttributeGraph, graph);
    attribute_writer.add_int32(kAttributeType, kGraphType);
    writer.add_message(kNodeAttribute, attribute);
  }
  AddIntegers(attributes, writer);
  protozero::pbf_writer(graph_).add_message(kGraphNode, bytes);
  return *this;
}

ModelBuilder& ModelBuilder::Opset(int version) {
  opset_ = version;
  return *this;
}

ModelBuilder& ModelBuilder::ExternalInitializer(std::string_view name, int64_t size,
                                                std::string_view file, int64_t offset) {
  constexpr int kExternal = 1;
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_int64(kTensorDims, size);
  writer.add_int32(kTensorDataType, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  writer.add_string(kTensorName, name.data(), name.size());
  const std::pair<std::string, std::string> entries[] = {{"location", std::string(file)},
                                                         {"offset", std::to_string(offset)}};
  for (const auto& [key, value] : entries) {
    std::string entry;
    protozero::pbf_writer entry_writer(entry);
    entry_writer.add_string(kEntryKey, key);
    entry_writer.add_string(kEntryValue, value);
    writer.add_message(kTensorExternalData, entry);
  }
  writer.add_int32(kTensorDataLocation, kExternal);
  protozero::pbf_writer(graph_).add_message(kGraphInitializer, bytes);
  return *this;
}

ModelBuilder& ModelBuilder::Initializer(std::string_view name, const std::vector<float>& values,
                                        size_t columns) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  const size_t rows = columns == 0 ? values.size() : values.size() / columns;
  writer.add_int64(kTensorDims, static_cast<int64_t>(rows));
  if (columns > 0) writer.add_int64(kTensorDims, static_cast<int64_t>(columns));
  writer.add_int32(kTensorDataType, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT);
  writer.add_packed_float(kTensorFloatData, values.begin(), values.end());
  writer.add_string(kTensorName, name.data(), name.size());
  protozero::pbf_writer(graph_).add_message(kGraphInitializer, bytes);
  return *this;
}

ModelBuilder& ModelBuilder::Metadata(std::string_view key, std::string_view value) {
  std::string bytes;
  protozero::pbf_writer writer(bytes);
  writer.add_string(kEntryKey, key.data(), key.size());
  writer.add_string(kEntryValue, value.data(), value.size());
  protozero::pbf_writer(metadata_).add_message(kModelMetadataProps, bytes);
  return *this;
}

std::string ModelBuilder::Bytes() const {
  std::string opset;
  protozero::pbf_writer(opset).add_int64(kOpsetVersion, opset_);
  std::string graph = graph_;
  protozero::pbf_writer graph_writer(graph);
  graph_writer.add_string(kGraphName, "small");
  graph_writer.add_string(kGraphDocString, "a small graph");
  std::string bytes = metadata_;
  protozero::pbf_writer writer(bytes);
  writer.add_int64(kModelIrVersion, 8);
  writer.add_string(kModelProducerName, "tests");
  writer.add_string(kModelProducerVersion, "1");
  writer.add_string(kModelDomain, "org.example");
  writer.add_int64(kModelModelVersion, 7);
  writer.add_string(kModelDocString, "a small model");
  writer.add_message(kModelGraph, graph);
  writer.add_message(kModelOpsetImport, opset);
  for (const std::string& domain : domains_) {
    std::string import;
    protozero::pbf_writer import_writer(import);
    import_writer.add_string(kOpsetDomain, domain);
    import_writer.add_int64(kOpsetVersion, 1);
    writer.add_message(kModelOpsetImport, import);
  }
  return bytes;
}

std::string AddReluModel() {
  const std::string batch_of_3 = TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {"n", 3});
  return ModelBuilder()
      .Input("x", batch_of_3)
      .Input("y", TensorType(ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, {3}))
      .Node("Add", {"x", "y"}, {"sum"})
      .Node("Relu", {"sum"}, {"z"})
      .Output("z", batch_of_3)
      .Bytes();
}

}  // namespace tenon::test
