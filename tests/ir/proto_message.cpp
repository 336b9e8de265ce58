#include "ir/proto_message.h"

namespace tenon {

Message NodeMessage(std::string_view op_type, Names inputs, Names outputs,
                    std::initializer_list<Message> attributes) {
  Message node;
  for (const std::string_view input : inputs) node.Bytes(NodeField::kInput, input);
  for (const std::string_view output : outputs) node.Bytes(NodeField::kOutput, output);
  node.Bytes(NodeField::kOpType, op_type);
  for (const Message& attribute : attributes) node.Add(NodeField::kAttribute, attribute);
  return node;
}

Message IntAttribute(std::string_view name, int64_t value) {
  return Message()
      .Bytes(AttributeField::kName, name)
      .Int(AttributeField::kInt, value)
      .Int(AttributeField::kType, static_cast<int64_t>(AttributeType::kInt));
}

Message GraphAttribute(std::string_view name, const Message& graph) {
  return Message()
      .Bytes(AttributeField::kName, name)
      .Add(AttributeField::kGraph, graph)
      .Int(AttributeField::kType, static_cast<int64_t>(AttributeType::kGraph));
}

Message FloatValue(std::string_view name, const std::vector<int64_t>& dims) {
  Message shape;
  for (const int64_t dim : dims) shape.Add(ShapeField::kDim, Message().Int(DimField::kValue, dim));
  const Message tensor =
      Message().Int(TensorTypeField::kElementType, 1).Add(TensorTypeField::kShape, shape);
  return Message()
      .Bytes(ValueInfoField::kName, name)
      .Add(ValueInfoField::kType, Message().Add(TypeField::kTensor, tensor));
}

Message RawTensor(std::string_view name, DataType type, const std::vector<int64_t>& dims,
                  std::string_view raw) {
  return Message()
      .Ints(TensorField::kDims, dims)
      .Int(TensorField::kDataType, static_cast<int64_t>(type))
      .Bytes(TensorField::kName, name)
      .Bytes(TensorField::kRawData, raw);
}

Message Entry(std::string_view key, std::string_view value) {
  return Message().Bytes(EntryField::kKey, key).Bytes(EntryField::kValue, value);
}

Message Opset(std::string_view domain, int64_t version) {
  return Message().Bytes(OpsetField::kDomain, domain).Int(OpsetField::kVersion, version);
}

Message ModelMessage(const Message& graph) {
  return Message()
      .Int(ModelField::kIrVersion, 10)
      .Add(ModelField::kGraph, graph)
      .Add(ModelField::kOpsetImport, Opset("", 21));
}

Result<Model> Parse(const Message& model) {
  return ReadModel(std::as_bytes(std::span(model.bytes())), nullptr);
}

std::string ErrorOf(const Message& model) {
  const Result<Model> read = Parse(model);
  return read ? "" : read.error().message();
}

std::string ErrorOfGraph(const Message& graph) { return ErrorOf(ModelMessage(graph)); }

}  // namespace tenon
