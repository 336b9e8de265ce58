#include "ir/graph_reader.h"

#include <algorithm>

#include "ir/attribute_reader.h"
#include "ir/constant_node.h"
#include "ir/onnx_fields.h"
#include "ir/schema.h"
#include "ir/tensor_reader.h"

namespace tenon {
namespace {

// Protobuf itself reads no message that is nested deeper than 100, and a subgraph takes three
// levels.
constexpr int kMaxGraphDepth = 34;

// How many names are compared to find the intended one for an undefined name.
constexpr size_t kMaxCandidates = 1000;

// A NodeProto; all views point into the file. One object is used for all nodes of a graph, so that
// its lists are allocated once.
struct NodeFields {
  std::vector<std::string_view> inputs;
  std::vector<std::string_view> outputs;
  std::vector<std::string_view> attributes;
  std::vector<std::string_view> device_configurations;
  std::string_view name, op_type, domain, overload, doc_string;
  Metadata metadata;

  void Clear() {
    for (auto* list : {&inputs, &outputs, &attributes, &device_configurations}) list->clear();
    for (auto* text : {&name, &op_type, &domain, &overload, &doc_string}) *text = {};
    metadata.clear();
  }
};

void ReadNodeFields(std::string_view bytes, WireErrors& errors, NodeFields& fields) {
  fields.Clear();
  WireReader reader("NodeProto", bytes, errors);
  while (reader.Next()) {
    switch (reader.field<NodeField>()) {
      case NodeField::kInput:
        fields.inputs.push_back(reader.Bytes());
        break;
      case NodeField::kOutput:
        fields.outputs.push_back(reader.Bytes());
        break;
      case NodeField::kName:
        fields.name = reader.Bytes();
        break;
      case NodeField::kOpType:
        fields.op_type = reader.Bytes();
        break;
      case NodeField::kAttribute:
        fields.attributes.push_back(reader.Bytes());
        break;
      case NodeField::kDocString:
        fields.doc_string = reader.Bytes();
        break;
      case NodeField::kDomain:
        fields.domain = reader.Bytes();
        break;
      case NodeField::kOverload:
        fields.overload = reader.Bytes();
        break;
      case NodeField::kMetadata:
        fields.metadata.insert(ReadEntry(reader.Bytes(), errors));
        break;
      case NodeField::kDeviceConfigurations:
        fields.device_configurations.push_back(reader.Bytes());
        break;
    }
  }
  if (fields.domain == "ai.onnx") fields.domain = "";
}

// The name that Node::Describe() will use, always with its number.
std::string Describe(const NodeFields& node, size_t index) {
  return node.name.empty() ? Format("{} node #{}", node.op_type, index)
                           : Format("{} node '{}' (#{})", node.op_type, node.name, index);
}

// In n log n steps: a hostile node may have any number of attributes.
Status CheckUnique(const std::vector<Attribute>& attributes) {
  std::vector<std::string_view> names;
  for (const Attribute& attribute : attributes) names.push_back(attribute.name);
  std::sort(names.begin(), names.end());
  const auto twice = std::adjacent_find(names.begin(), names.end());
  if (twice == names.end()) return OkStatus();
  return InvalidGraph("attribute '{}' is given more than once", *twice);
}

class GraphReader {
 public:
  // `outer` reads the graph around this one, or is null. All must outlive the reader.
  GraphReader(const GraphScope& scope, GraphReader* outer, ReadContext& context)
      : scope_(scope),
        outer_(outer),
        depth_(outer ? outer->depth_ + 1 : 0),
        context_(context),
        graph_(std::make_unique<Graph>()) {}

  Result<std::unique_ptr<Graph>> Build(GraphFields fields);

 private:
  Status AddInputs(std::vector<ValueDeclaration> inputs, const GraphFields& fields);
  Status AddInitializers(const std::vector<std::string_view>& tensors);
  Status AddSparseInitializers(const std::vector<std::string_view>& tensors);
  Status AddInitializer(std::string name, Value value, ValueType type, std::string doc_string,
                        Metadata metadata);
  Status DeclareNodeOutputs(const std::vector<std::string_view>& nodes);
  Status DeclareOutputsOf(const NodeFields& node);
  Status ApplyValueInfos(const std::vector<std::string_view>& values);
  Status AddNodes(const std::vector<std::string_view>& nodes);
  Status AddNode(NodeFields& fields, size_t& next_output);
  Status AddOutputs(std::vector<ValueDeclaration> outputs);
  Result<NodeSpec> ReadNode(const NodeFields& fields, size_t& next_output);
  Result<std::vector<Attribute>> ReadAttributes(const std::vector<std::string_view>& attributes);
  Result<std::unique_ptr<Graph>> ReadSubgraph(std::string_view bytes);

  Result<ValueId> Define(std::string_view name, ValueType type = {});
  // The value of that name here or, captured, in an outer graph; kNone if there is none.
  ValueId Resolve(std::string_view name);
  Result<ValueId> MustResolve(std::string_view name);

  const GraphScope& scope_;
  GraphReader* outer_;
  int depth_;
  ReadContext& context_;
  std::unique_ptr<Graph> graph_;
  // The present outputs of all nodes, in the order of the file.
  std::vector<ValueId> node_outputs_;
};

Result<ValueId> GraphReader::Define(std::string_view name, ValueType type) {
  const ValueId id = graph_->TryAddValue(std::string(name), std::move(type));
  if (id == ValueId::kNone) return InvalidGraph("value '{}' is defined more than once", name);
  return id;
}

ValueId GraphReader::Resolve(std::string_view name) {
  const ValueId local = graph_->FindValue(name);
  if (local != ValueId::kNone || outer_ == nullptr) return local;
  const ValueId outer = outer_->Resolve(name);
  if (outer == ValueId::kNone) return outer;
  const ValueId inner = graph_->AddValue(std::string(name), outer_->graph_->value(outer).type);
  graph_->captures.push_back({outer, inner});
  return inner;
}

Result<ValueId> GraphReader::MustResolve(std::string_view name) {
  const ValueId id = Resolve(name);
  if (id != ValueId::kNone) return id;
  if (scope_.may_use_others_values) return graph_->AddValue(std::string(name));
  std::vector<std::string> candidates;
  for (size_t i = 0; i < std::min(graph_->value_count(), kMaxCandidates); ++i) {
    candidates.push_back(graph_->value(static_cast<ValueId>(i)).name);
  }
  return InvalidGraph("'{}' is not the output of a node, an input or an initializer{}", name,
                      DidYouMean(name, candidates));
}

// Names of the tensors in `initializers`; wrong bytes are reported when they are read in full.
std::vector<std::string_view> InitializerNames(const GraphFields& fields, ReadContext& context) {
  std::vector<std::string_view> names;
  for (const std::string_view bytes : fields.initializers) {
    WireReader reader("TensorProto", bytes, context.errors);
    while (reader.Next()) {
      if (reader.field<TensorField>() == TensorField::kName) names.push_back(reader.Bytes());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

Status GraphReader::AddInputs(std::vector<ValueDeclaration> inputs, const GraphFields& fields) {
  std::vector<std::string_view> constants;
  if (context_.ir_version < kInitializersNeedNoInput) {
    constants = InitializerNames(fields, context_);
  }
  for (ValueDeclaration& input : inputs) {
    if (input.name.empty()) return InvalidGraph("an input has no name");
    TENON_ASSIGN_OR_RETURN(const ValueId id, Define(input.name, std::move(input.type)));
    graph_->value(id).doc_string = std::move(input.doc_string);
    graph_->value(id).metadata = std::move(input.metadata);
    if (!std::binary_search(constants.begin(), constants.end(), input.name)) graph_->AddInput(id);
  }
  return OkStatus();
}

Status GraphReader::AddInitializer(std::string name, Value value, ValueType type,
                                   std::string doc_string, Metadata metadata) {
  if (name.empty()) return InvalidGraph("an initializer has no name");
  ValueId id = graph_->FindValue(name);
  if (id == ValueId::kNone) {
    id = graph_->AddValue(std::move(name), std::move(type));
  } else {
    ValueInfo& declared = graph_->value(id);
    if (declared.initializer.has_value()) {
      return InvalidGraph("initializer '{}' is defined more than once", name);
    }
    const bool same_type = declared.type.kind == Value::Kind::kNone ||
                           declared.type.element_type == DataType::kUndefined ||
                           declared.type.element_type == type.element_type;
    if (!same_type) {
      return InvalidGraph("initializer '{}': expected {} as of the input, got {}", name,
                          declared.type.TypeName(), type.TypeName());
    }
    if (!declared.is_input || !declared.type.shape) declared.type = std::move(type);
  }
  ValueInfo& info = graph_->value(id);
  info.initializer = std::move(value);
  info.initializer_metadata = std::move(metadata);
  if (info.doc_string.empty()) info.doc_string = std::move(doc_string);
  return OkStatus();
}

Status GraphReader::AddInitializers(const std::vector<std::string_view>& tensors) {
  for (const std::string_view bytes : tensors) {
    TENON_ASSIGN_OR_RETURN(NamedTensor named,
                           scope_.is_main && outer_ == nullptr
                               ? ReadInitializer(bytes, context_)
                               : ReadTensorProto(bytes, context_, ViewAlignment::kAny));
    ValueType type = ValueType::Tensor(named.tensor.type(), named.tensor.shape());
    TENON_RETURN_IF_ERROR(AddInitializer(std::move(named.name), Value(std::move(named.tensor)),
                                         std::move(type), std::move(named.doc_string),
                                         std::move(named.metadata)));
  }
  return OkStatus();
}

Status GraphReader::AddSparseInitializers(const std::vector<std::string_view>& tensors) {
  for (const std::string_view bytes : tensors) {
    TENON_ASSIGN_OR_RETURN(NamedSparseTensor named, ReadSparseTensorProto(bytes, context_));
    // Nodes use a sparse initializer as a dense tensor.
    ValueType type =
        ValueType::Tensor(named.tensor->values.type(), SymbolicShape(named.tensor->dense_shape));
    TENON_RETURN_IF_ERROR(AddInitializer(std::move(named.name), Value(std::move(named.tensor)),
                                         std::move(type), std::move(named.doc_string),
                                         std::move(named.metadata)));
  }
  return OkStatus();
}

Status GraphReader::DeclareOutputsOf(const NodeFields& node) {
  for (const std::string_view output : node.outputs) {
    if (output.empty()) continue;
    TENON_ASSIGN_OR_RETURN(const ValueId id, Define(output));
    node_outputs_.push_back(id);
  }
  return OkStatus();
}

Status GraphReader::DeclareNodeOutputs(const std::vector<std::string_view>& nodes) {
  NodeFields fields;
  node_outputs_.reserve(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    ReadNodeFields(nodes[i], context_.errors, fields);
    TENON_RETURN_IF_ERROR(context_.errors.status());
    Status status = DeclareOutputsOf(fields);
    if (!status.ok()) return std::move(status).WithContext(Describe(fields, i));
  }
  return OkStatus();
}

Status GraphReader::ApplyValueInfos(const std::vector<std::string_view>& values) {
  for (const std::string_view bytes : values) {
    TENON_ASSIGN_OR_RETURN(ValueDeclaration declaration, ReadValueInfo(bytes, context_.errors));
    const ValueId id = graph_->FindValue(declaration.name);
    if (id == ValueId::kNone) continue;
    ValueInfo& info = graph_->value(id);
    // The type in an input or a tensor has precedence over that in a list.
    if (info.type.kind == Value::Kind::kNone) info.type = std::move(declaration.type);
    if (info.doc_string.empty()) info.doc_string = std::move(declaration.doc_string);
    if (info.metadata.empty()) info.metadata = std::move(declaration.metadata);
  }
  return OkStatus();
}

Status GraphReader::AddNodes(const std::vector<std::string_view>& nodes) {
  NodeFields fields;
  size_t next_output = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    ReadNodeFields(nodes[i], context_.errors, fields);
    Status status = AddNode(fields, next_output);
    if (!status.ok()) {
      // Wrong bytes are reported at their position, whatever node they belong to.
      if (context_.errors.failed()) return context_.errors.status();
      return std::move(status).WithContext(Describe(fields, i));
    }
  }
  return OkStatus();
}

Status GraphReader::AddNode(NodeFields& fields, size_t& next_output) {
  TENON_ASSIGN_OR_RETURN(NodeSpec spec, ReadNode(fields, next_output));
  Node& node = graph_->AddNode(std::move(spec));
  node.overload = fields.overload;
  node.doc_string = fields.doc_string;
  node.metadata = std::move(fields.metadata);
  node.device_configurations.assign(fields.device_configurations.begin(),
                                    fields.device_configurations.end());
  node.schema = FindSchema(node.domain, node.op_type, node.opset);
  NormalizeConstantNode(node);
  return OkStatus();
}

Result<NodeSpec> GraphReader::ReadNode(const NodeFields& fields, size_t& next_output) {
  if (fields.op_type.empty()) return InvalidGraph("has no op_type");
  NodeSpec spec;
  spec.op_type = fields.op_type;
  spec.domain = fields.domain;
  spec.name = fields.name;
  const auto imported = scope_.opsets->find(fields.domain);
  if (imported != scope_.opsets->end()) {
    spec.opset = imported->second;
  } else if (!scope_.in_function && NewestOpset(fields.domain) > 0) {
    spec.opset = NewestOpset(fields.domain);  // onnxruntime's tools do not import all domains
  } else if (!scope_.in_function && context_.takes_any_domain) {
    spec.opset = kNewestOtherOpset;
  } else {
    return InvalidGraph("the {} has no opset import for the domain '{}'", scope_.importer,
                        fields.domain.empty() ? "ai.onnx" : fields.domain);
  }
  spec.inputs.reserve(fields.inputs.size());
  for (size_t i = 0; i < fields.inputs.size(); ++i) {
    if (fields.inputs[i].empty()) {
      spec.inputs.push_back(ValueId::kNone);
      continue;
    }
    Result<ValueId> id = MustResolve(fields.inputs[i]);
    if (!id) return Error(std::move(id.error()).WithContext(Format("input {}", i)));
    spec.inputs.push_back(*id);
  }
  spec.outputs.reserve(fields.outputs.size());
  for (const std::string_view output : fields.outputs) {
    spec.outputs.push_back(output.empty() ? ValueId::kNone : node_outputs_[next_output++]);
  }
  TENON_ASSIGN_OR_RETURN(spec.attributes, ReadAttributes(fields.attributes));
  return spec;
}

Result<std::vector<Attribute>> GraphReader::ReadAttributes(
    const std::vector<std::string_view>& serialized) {
  std::vector<Attribute> attributes;
  attributes.reserve(serialized.size());
  for (const std::string_view bytes : serialized) {
    TENON_ASSIGN_OR_RETURN(
        Attribute attribute,
        ReadAttributeProto(
            bytes, scope_.in_function,
            [this](std::string_view graph) { return ReadSubgraph(graph); }, context_));
    attributes.push_back(std::move(attribute));
  }
  TENON_RETURN_IF_ERROR(CheckUnique(attributes));
  return attributes;
}

Result<std::unique_ptr<Graph>> GraphReader::ReadSubgraph(std::string_view bytes) {
  if (depth_ + 1 >= kMaxGraphDepth) {
    return InvalidGraph("subgraphs are nested more than {} levels deep", kMaxGraphDepth);
  }
  TENON_ASSIGN_OR_RETURN(GraphFields fields, ReadGraphFields(bytes, context_));
  return GraphReader(scope_, this, context_).Build(std::move(fields));
}

Status GraphReader::AddOutputs(std::vector<ValueDeclaration> outputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    Result<ValueId> id = MustResolve(outputs[i].name);
    if (!id) return Error(std::move(id.error()).WithContext(Format("graph output {}", i)));
    ValueInfo& info = graph_->value(*id);
    Result<ValueType> type = MergeTypes(outputs[i].type, info.type);
    if (!type && info.initializer.has_value() &&
        info.type.TypeName() != outputs[i].type.TypeName()) {
      return InvalidGraph("output '{}': expected {} as of the initializer, got {}", outputs[i].name,
                          info.type.TypeName(), outputs[i].type.TypeName());
    }
    // The type of an output is what the model promises to its callers.
    info.type = type ? std::move(*type) : std::move(outputs[i].type);
    if (info.doc_string.empty()) info.doc_string = std::move(outputs[i].doc_string);
    if (info.metadata.empty()) info.metadata = std::move(outputs[i].metadata);
    graph_->AddOutput(std::string(outputs[i].name), *id);
  }
  return OkStatus();
}

Result<std::unique_ptr<Graph>> GraphReader::Build(GraphFields fields) {
  // Nodes usually have one output.
  graph_->Reserve(fields.inputs.size() + fields.initializers.size() + fields.nodes.size(),
                  fields.nodes.size());
  graph_->name = std::move(fields.name);
  graph_->doc_string = std::move(fields.doc_string);
  graph_->metadata = std::move(fields.metadata);
  graph_->quantization_annotations = std::move(fields.quantization_annotations);
  TENON_RETURN_IF_ERROR(AddInputs(std::move(fields.inputs), fields));
  TENON_RETURN_IF_ERROR(AddInitializers(fields.initializers));
  TENON_RETURN_IF_ERROR(AddSparseInitializers(fields.sparse_initializers));
  TENON_RETURN_IF_ERROR(DeclareNodeOutputs(fields.nodes));
  TENON_RETURN_IF_ERROR(ApplyValueInfos(fields.value_infos));
  TENON_RETURN_IF_ERROR(AddNodes(fields.nodes));
  TENON_RETURN_IF_ERROR(AddOutputs(std::move(fields.outputs)));
  TENON_RETURN_IF_ERROR(graph_->TopologicalOrder());
  return std::move(graph_);
}

}  // namespace

Result<std::unique_ptr<Graph>> BuildGraph(GraphFields fields, const GraphScope& scope,
                                          ReadContext& context) {
  const std::string name = fields.name;
  GraphReader reader(scope, nullptr, context);
  Result<std::unique_ptr<Graph>> graph = reader.Build(std::move(fields));
  if (!graph && !context.errors.failed()) {
    return Error(std::move(graph.error()).WithContext(Format("graph '{}'", name)));
  }
  return graph;
}

Result<Attribute> ReadFunctionAttribute(std::string_view bytes, const GraphScope& scope,
                                        ReadContext& context) {
  const auto read_subgraph = [&](std::string_view graph) -> Result<std::unique_ptr<Graph>> {
    TENON_ASSIGN_OR_RETURN(GraphFields fields, ReadGraphFields(graph, context));
    return GraphReader(scope, nullptr, context).Build(std::move(fields));
  };
  return ReadAttributeProto(bytes, false, read_subgraph, context);
}

}  // namespace tenon
