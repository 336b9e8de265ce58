#include "ir/attribute_writer.h"

namespace tenon {
namespace {

// Writes one value, or each value of a list; one overload for every alternative of Attribute::Held.
class HeldWriter {
 public:
  HeldWriter(SubgraphWriter write_subgraph, WriteContext& context,
             MessageBuilder<AttributeField>& message)
      : write_subgraph_(write_subgraph), context_(context), message_(message) {}

  Status operator()(std::monostate) { return InvalidGraph("has no value"); }
  Status operator()(float value) {
    message_.add_float(AttributeField::kFloat, value);
    return OkStatus();
  }
  Status operator()(int64_t value) {
    message_.add_int64(AttributeField::kInt, value);
    return OkStatus();
  }
  Status operator()(const std::string& value) {
    message_.add_bytes(AttributeField::kString, value);
    return OkStatus();
  }
  Status operator()(const Tensor& tensor) { return Write(tensor, AttributeField::kTensor); }
  Status operator()(const std::unique_ptr<Graph>& graph) {
    return Write(graph, AttributeField::kGraph);
  }
  Status operator()(const std::shared_ptr<SparseTensor>& tensor) {
    return Write(tensor, AttributeField::kSparseTensor);
  }
  Status operator()(const ValueType& type) { return Write(type, AttributeField::kTypeProto); }
  Status operator()(const std::vector<float>& values) {
    for (const float value : values) message_.add_float(AttributeField::kFloats, value);
    return OkStatus();
  }
  Status operator()(const std::vector<int64_t>& values) {
    for (const int64_t value : values) message_.add_int64(AttributeField::kInts, value);
    return OkStatus();
  }
  Status operator()(const std::vector<std::string>& values) {
    for (const std::string& value : values) message_.add_bytes(AttributeField::kStrings, value);
    return OkStatus();
  }
  Status operator()(const std::vector<Tensor>& tensors) {
    return WriteAll(tensors, AttributeField::kTensors);
  }
  Status operator()(const std::vector<std::unique_ptr<Graph>>& graphs) {
    return WriteAll(graphs, AttributeField::kGraphs);
  }
  Status operator()(const std::vector<std::shared_ptr<SparseTensor>>& tensors) {
    return WriteAll(tensors, AttributeField::kSparseTensors);
  }
  Status operator()(const std::vector<ValueType>& types) {
    return WriteAll(types, AttributeField::kTypeProtos);
  }

 private:
  Status Write(const Tensor& tensor, AttributeField field) {
    MessageBuilder<TensorField> message(message_, field);
    return WriteTensor("", tensor, context_, message);
  }
  Status Write(const std::unique_ptr<Graph>& graph, AttributeField field) {
    MessageBuilder<GraphField> message(message_, field);
    return write_subgraph_(*graph, message);
  }
  Status Write(const std::shared_ptr<SparseTensor>& tensor, AttributeField field) {
    MessageBuilder<SparseTensorField> message(message_, field);
    return WriteSparseTensor("", *tensor, context_, message);
  }
  Status Write(const ValueType& type, AttributeField field) {
    message_.add_message(field, TypeMessage(type));
    return OkStatus();
  }
  template <class T>
  Status WriteAll(const std::vector<T>& values, AttributeField field) {
    for (const T& value : values) TENON_RETURN_IF_ERROR(Write(value, field));
    return OkStatus();
  }

  const SubgraphWriter write_subgraph_;
  WriteContext& context_;
  MessageBuilder<AttributeField>& message_;
};

}  // namespace

Status WriteAttribute(const Attribute& attribute, SubgraphWriter write_subgraph,
                      WriteContext& context, MessageBuilder<AttributeField>& message) {
  message.add_string(AttributeField::kName, attribute.name);
  WriteText(attribute.doc_string, message, AttributeField::kDocString);
  message.add_enum(AttributeField::kType, static_cast<int32_t>(attribute.type()));
  if (!attribute.reference.empty()) {
    message.add_string(AttributeField::kReference, attribute.reference);
    return OkStatus();
  }
  Status status = std::visit(HeldWriter(write_subgraph, context, message), attribute.held);
  return std::move(status).WithContext(Format("attribute '{}'", attribute.name));
}

}  // namespace tenon
