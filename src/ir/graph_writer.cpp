#include "ir/graph_writer.h"

#include <algorithm>

#include "ir/attribute_writer.h"
#include "ir/schema.h"

namespace tenon {
namespace {

std::string ValueInfoMessage(const std::string& name, const ValueInfo& info) {
  std::string bytes;
  MessageBuilder<ValueInfoField> message(bytes);
  message.add_string(ValueInfoField::kName, name);
  if (info.type.kind != Value::Kind::kNone) {
    message.add_message(ValueInfoField::kType, TypeMessage(info.type));
  }
  WriteText(info.doc_string, message, ValueInfoField::kDocString);
  WriteEntries(info.metadata, message, ValueInfoField::kMetadata);
  return bytes;
}

class GraphWriter {
 public:
  GraphWriter(const Graph& graph, const ValueNames* outer, const WriteScope& scope)
      : graph_(graph), names_(graph, outer), scope_(scope) {}

  Status WriteTo(MessageBuilder<GraphField>& message) const;
  const ValueNames& names() const { return names_; }

  // Of a GraphProto or FunctionProto.
  template <class Field>
  Status WriteNodes(MessageBuilder<Field>& message, Field field) const;
  template <class Field>
  void WriteValueInfos(MessageBuilder<Field>& message, Field field) const;

 private:
  const ValueInfo& Info(size_t i) const { return graph_.value(static_cast<ValueId>(i)); }
  // Whether another list than value_info already describes the value.
  bool IsDescribedElsewhere(const ValueInfo& info) const;
  void WriteInputs(MessageBuilder<GraphField>& message) const;
  void WriteOutputs(MessageBuilder<GraphField>& message) const;
  void WriteAnnotations(MessageBuilder<GraphField>& message) const;
  Status WriteInitializers(MessageBuilder<GraphField>& message) const;
  Status WriteDense(const ValueInfo& info, const std::string& name,
                    MessageBuilder<GraphField>& message) const;
  Status WriteNode(const Node& node, MessageBuilder<NodeField>& message) const;
  template <class Field>
  Status WriteIdentities(MessageBuilder<Field>& message, Field field) const;

  const Graph& graph_;
  ValueNames names_;
  const WriteScope& scope_;
};

Status GraphWriter::WriteTo(MessageBuilder<GraphField>& message) const {
  // Always written, so that the message is never empty.
  message.add_string(GraphField::kName, graph_.name);
  WriteText(graph_.doc_string, message, GraphField::kDocString);
  TENON_RETURN_IF_ERROR(WriteNodes(message, GraphField::kNode));
  TENON_RETURN_IF_ERROR(WriteInitializers(message));
  WriteInputs(message);
  WriteOutputs(message);
  WriteValueInfos(message, GraphField::kValueInfo);
  WriteAnnotations(message);
  WriteEntries(graph_.metadata, message, GraphField::kMetadata);
  return OkStatus();
}

void GraphWriter::WriteInputs(MessageBuilder<GraphField>& message) const {
  for (const ValueId id : graph_.inputs) {
    message.add_message(GraphField::kInput, ValueInfoMessage(names_[id], graph_.value(id)));
  }
  if (scope_.context->ir_version >= kInitializersNeedNoInput) return;
  for (size_t i = 0; i < graph_.value_count(); ++i) {
    if (!Info(i).initializer.is_tensor() || Info(i).is_input) continue;
    const std::string& name = names_[static_cast<ValueId>(i)];
    message.add_message(GraphField::kInput, ValueInfoMessage(name, Info(i)));
  }
}

void GraphWriter::WriteOutputs(MessageBuilder<GraphField>& message) const {
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueInfo& info = graph_.value(graph_.outputs()[i].value);
    message.add_message(GraphField::kOutput, ValueInfoMessage(names_.outputs()[i].name, info));
  }
}

bool GraphWriter::IsDescribedElsewhere(const ValueInfo& info) const {
  if (info.is_input || info.output_uses > 0) return true;
  const bool is_typed_by_tensor = info.initializer.has_value() && info.metadata.empty();
  const bool says_nothing =
      info.type.kind == Value::Kind::kNone && info.doc_string.empty() && info.metadata.empty();
  const bool is_dead = info.producer == NodeId::kNone && !info.initializer.has_value();
  return is_typed_by_tensor || says_nothing || is_dead;
}

template <class Field>
void GraphWriter::WriteValueInfos(MessageBuilder<Field>& message, Field field) const {
  for (size_t i = 0; i < graph_.value_count(); ++i) {
    if (IsDescribedElsewhere(Info(i))) continue;
    message.add_message(field, ValueInfoMessage(names_[static_cast<ValueId>(i)], Info(i)));
  }
}

void GraphWriter::WriteAnnotations(MessageBuilder<GraphField>& message) const {
  for (const QuantizationAnnotation& annotation : graph_.quantization_annotations) {
    MessageBuilder<AnnotationField> entry(message, GraphField::kQuantizationAnnotation);
    entry.add_string(AnnotationField::kTensorName, annotation.tensor_name);
    WriteEntries(annotation.quant_parameter_tensor_names, entry,
                 AnnotationField::kQuantParameterTensorNames);
  }
}

Status GraphWriter::WriteDense(const ValueInfo& info, const std::string& name,
                               MessageBuilder<GraphField>& message) const {
  MessageBuilder<TensorField> tensor(message, GraphField::kInitializer);
  if (!info.is_input) WriteText(info.doc_string, tensor, TensorField::kDocString);
  WriteEntries(info.initializer_metadata, tensor, TensorField::kMetadata);
  return WriteInitializer(name, info.initializer.tensor(), *scope_.context, tensor);
}

Status GraphWriter::WriteInitializers(MessageBuilder<GraphField>& message) const {
  for (size_t i = 0; i < graph_.value_count(); ++i) {
    const std::string& name = names_[static_cast<ValueId>(i)];
    if (Info(i).initializer.is_tensor()) {
      TENON_RETURN_IF_ERROR(WriteDense(Info(i), name, message));
    } else if (Info(i).initializer.has_value()) {
      MessageBuilder<SparseTensorField> sparse(message, GraphField::kSparseInitializer);
      TENON_RETURN_IF_ERROR(
          WriteSparseTensor(name, Info(i).initializer.sparse(), *scope_.context, sparse));
    }
  }
  return OkStatus();
}

Status GraphWriter::WriteNode(const Node& node, MessageBuilder<NodeField>& message) const {
  TENON_RETURN_IF_ERROR(ImportOperator(node, *scope_.opsets));
  for (const ValueId id : node.inputs) message.add_string(NodeField::kInput, names_[id]);
  for (const ValueId id : node.outputs) message.add_string(NodeField::kOutput, names_[id]);
  WriteText(node.name, message, NodeField::kName);
  message.add_string(NodeField::kOpType, node.op_type);
  WriteText(node.domain, message, NodeField::kDomain);
  WriteText(node.overload, message, NodeField::kOverload);
  WriteText(node.doc_string, message, NodeField::kDocString);
  for (const Attribute& attribute : node.attributes) {
    MessageBuilder<AttributeField> builder(message, NodeField::kAttribute);
    TENON_RETURN_IF_ERROR(WriteAttribute(
        attribute,
        [&](const Graph& graph, auto& into) { return WriteGraph(graph, &names_, scope_, into); },
        *scope_.context, builder));
  }
  WriteEntries(node.metadata, message, NodeField::kMetadata);
  for (const std::string& configuration : node.device_configurations) {
    message.add_message(NodeField::kDeviceConfigurations, configuration);
  }
  return OkStatus();
}

template <class Field>
Status GraphWriter::WriteNodes(MessageBuilder<Field>& message, Field field) const {
  TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
  for (const NodeId id : order) {
    MessageBuilder<NodeField> builder(message, field);
    Status status = WriteNode(graph_.node(id), builder);
    if (!status.ok()) return std::move(status).WithContext(graph_.node(id).Describe());
  }
  return WriteIdentities(message, field);
}

template <class Field>
Status GraphWriter::WriteIdentities(MessageBuilder<Field>& message, Field field) const {
  for (size_t i = 0; i < graph_.outputs().size(); ++i) {
    const ValueNames::Output& output = names_.outputs()[i];
    if (!output.needs_identity) continue;
    TENON_RETURN_IF_ERROR(CheckIdentity(graph_, names_, i));
    scope_.opsets->emplace("", kIdentityOpset);
    MessageBuilder<NodeField> identity(message, field);
    identity.add_string(NodeField::kInput, names_[graph_.outputs()[i].value]);
    identity.add_string(NodeField::kOutput, output.name);
    identity.add_string(NodeField::kOpType, "Identity");
  }
  return OkStatus();
}

}  // namespace

Status ImportOperator(const Node& node, OpsetImports& opsets) {
  const auto [import, is_new] = opsets.emplace(node.domain, std::max(node.opset, 1));
  if (is_new || node.schema == nullptr) return OkStatus();
  if (FindSchema(node.domain, node.op_type, import->second) == node.schema) return OkStatus();
  return InvalidGraph("means {}-{}, which opset {} of domain '{}' does not have", node.op_type,
                      node.schema->since, import->second, node.domain);
}

Status CheckIdentity(const Graph& graph, const ValueNames& names, size_t i) {
  const std::string& name = names.outputs()[i].name;
  const ValueId taken = graph.FindValue(name);
  if (taken == ValueId::kNone || names[taken] != name) return OkStatus();
  return InvalidGraph("output {} is called '{}' as another value that must keep its name", i, name);
}

Status WriteGraph(const Graph& graph, const ValueNames* outer, const WriteScope& scope,
                  MessageBuilder<GraphField>& message) {
  return GraphWriter(graph, outer, scope).WriteTo(message);
}

Status WriteFunction(const Function& function, WriteContext& context,
                     MessageBuilder<FunctionField>& message) {
  message.add_string(FunctionField::kName, function.name);
  WriteText(function.domain, message, FunctionField::kDomain);
  WriteText(function.overload, message, FunctionField::kOverload);
  WriteText(function.doc_string, message, FunctionField::kDocString);
  OpsetImports opsets = function.opsets;
  const WriteScope scope = {&opsets, &context};
  const Graph& body = *function.body;
  const GraphWriter writer(body, nullptr, scope);
  for (const ValueId id : body.inputs) {
    message.add_string(FunctionField::kInput, writer.names()[id]);
  }
  for (const ValueNames::Output& output : writer.names().outputs()) {
    message.add_string(FunctionField::kOutput, output.name);
  }
  for (const std::string& name : function.required_attributes) {
    message.add_string(FunctionField::kAttribute, name);
  }
  for (const Attribute& attribute : function.attributes) {
    MessageBuilder<AttributeField> builder(message, FunctionField::kAttributeProto);
    TENON_RETURN_IF_ERROR(WriteAttribute(
        attribute,
        [&](const Graph& graph, auto& into) { return WriteGraph(graph, nullptr, scope, into); },
        *scope.context, builder));
  }
  TENON_RETURN_IF_ERROR(writer.WriteNodes(message, FunctionField::kNode));
  writer.WriteValueInfos(message, FunctionField::kValueInfo);
  WriteEntries(function.metadata, message, FunctionField::kMetadata);
  for (const auto& [domain, version] : opsets) {
    MessageBuilder<OpsetField> import(message, FunctionField::kOpsetImport);
    import.add_string(OpsetField::kDomain, domain);
    import.add_int64(OpsetField::kVersion, version);
  }
  return OkStatus();
}

}  // namespace tenon
