#include "capi/graph/made_model.h"

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "capi/graph/made_graph.h"
#include "ir/constant_node.h"
#include "ir/onnx_fields.h"
#include "ir/schema.h"

namespace tenon::capi {
namespace {

// The same graph without outputs and with the same ids, because outputs of a graph cannot be
// removed. It has no removed nodes, since it has not been changed after it was read or made.
std::unique_ptr<Graph> WithoutOutputs(Graph& graph) {
  auto copy = std::make_unique<Graph>();
  copy->name = graph.name;
  copy->doc_string = graph.doc_string;
  copy->metadata = graph.metadata;
  copy->captures = graph.captures;
  copy->quantization_annotations = graph.quantization_annotations;
  for (size_t i = 0; i < graph.value_count(); ++i) {
    const ValueInfo& from = graph.value(static_cast<ValueId>(i));
    ValueInfo& into = copy->value(copy->AddValue(from.name, from.type));
    into.doc_string = from.doc_string;
    into.metadata = from.metadata;
    into.initializer = from.initializer;
    into.initializer_metadata = from.initializer_metadata;
  }
  for (const ValueId id : graph.inputs) copy->AddInput(id);
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    Node& from = graph.node(static_cast<NodeId>(i));
    Node& into = copy->AddNode({from.op_type, from.domain, from.inputs, from.outputs,
                                std::move(from.attributes), from.name, from.opset});
    into.overload = from.overload;
    into.doc_string = from.doc_string;
    into.metadata = from.metadata;
    into.device_configurations = from.device_configurations;
    into.schema = from.schema;
    copy->RefreshCaptures(into.id);
  }
  return copy;
}

class ModelChange {
 public:
  ModelChange(Model& model, const MadeGraph& made, bool knows_opsets)
      : model_(model), made_(made), knows_opsets_(knows_opsets) {}

  Status Apply() {
    SetInputs();
    TENON_RETURN_IF_ERROR(AddInitializers());
    for (const auto& node : made_.nodes) TENON_RETURN_IF_ERROR(DefineOutputs(*node));
    for (const auto& node : made_.nodes) TENON_RETURN_IF_ERROR(AddNode(*node));
    return SetOutputs();
  }

 private:
  Graph& graph() { return *model_.graph; }

  ValueId ValueOf(const std::string& name) {
    const ValueId id = graph().FindValue(name);
    return id == ValueId::kNone ? graph().AddValue(name) : id;
  }

  bool IsDefined(ValueId id) {
    const ValueInfo& info = graph().value(id);
    return info.is_input || info.initializer.has_value() || info.producer != NodeId::kNone;
  }

  void SetInputs() {
    if (!made_.has_inputs) return;
    for (const ValueId id : graph().inputs) graph().value(id).is_input = false;
    graph().inputs.clear();
    for (const auto& input : made_.inputs) {
      const ValueId id = ValueOf(input->name);
      graph().value(id).type = input->type;
      graph().AddInput(id);
    }
  }

  Status AddInitializers() {
    for (const auto& [name, value] : made_.initializers) {
      const Tensor& tensor = value->tensor();
      const ValueId id = ValueOf(name);
      const ValueInfo& info = graph().value(id);
      if (info.initializer.has_value() || info.producer != NodeId::kNone) {
        return InvalidGraph("'{}' is defined more than once", name);
      }
      if (!info.is_input) {
        graph().value(id).type = ValueType::Tensor(tensor.type(), SymbolicShape(tensor.shape()));
      }
      graph().SetInitializer(id, tensor);
    }
    return OkStatus();
  }

  // Before any node is added, so that nodes may be in any order.
  Status DefineOutputs(const OrtNode& node) {
    for (const std::string& name : node.output_names) {
      if (name.empty()) continue;
      if (IsDefined(ValueOf(name)) || !made_outputs_.insert(name).second) {
        return InvalidGraph("This is an invalid model: '{}' is defined more than once", name);
      }
    }
    return OkStatus();
  }

  Result<std::vector<ValueId>> IdsOf(const OrtNode& node, const std::vector<std::string>& names) {
    std::vector<ValueId> ids;
    for (const std::string& name : names) {
      ids.push_back(name.empty() ? ValueId::kNone : ValueOf(name));
      if (name.empty() || IsDefined(ids.back()) || made_outputs_.contains(name)) continue;
      return InvalidGraph(
          "{} node '{}': Node input '{}' is not a graph input, initializer, or output of a "
          "previous node.",
          node.made->op_type, node.made->name, name);
    }
    return ids;
  }

  Status AddNode(const OrtNode& node) {
    const Node& made = *node.made;
    NodeSpec spec;
    spec.op_type = made.op_type;
    spec.domain = made.domain;
    spec.name = made.name;
    TENON_ASSIGN_OR_RETURN(spec.inputs, IdsOf(node, node.input_names));
    TENON_ASSIGN_OR_RETURN(spec.outputs, IdsOf(node, node.output_names));
    for (const Attribute& attribute : made.attributes) {
      spec.attributes.push_back(CloneAttribute(attribute));
    }
    const auto import = model_.opsets.find(made.domain);
    if (import != model_.opsets.end()) {
      spec.opset = import->second;
    } else if (knows_opsets_) {
      return InvalidGraph("{} node '{}': Error No opset import for domain '{}'", made.op_type,
                          made.name, made.domain);
    }
    Node& added = graph().AddNode(std::move(spec));
    NormalizeConstantNode(added);
    added.schema = FindSchema(added.domain, added.op_type, added.opset);
    return OkStatus();
  }

  Status SetOutputs() {
    if (!made_.has_outputs) return OkStatus();
    if (!graph().outputs().empty()) model_.graph = WithoutOutputs(graph());
    for (const auto& output : made_.outputs) {
      const ValueId id = graph().FindValue(output->name);
      if (id == ValueId::kNone || !IsDefined(id)) {
        return InvalidGraph("output '{}' is no input, initializer or output of a node",
                            output->name);
      }
      ValueType& type = graph().value(id).type;
      TENON_ASSIGN_OR_RETURN(type, MergeTypes(type, output->type));
      graph().AddOutput(output->name, id);
    }
    return OkStatus();
  }

  Model& model_;
  const MadeGraph& made_;
  const bool knows_opsets_;
  std::set<std::string> made_outputs_;
};

}  // namespace

Result<Model> ModelOf(const MadeGraph& graph, const OpsetImports& opsets) {
  Model model;
  model.ir_version = kNewestIrVersion;
  model.opsets = opsets;
  model.producer_name = "tenon";
  model.graph = std::make_unique<Graph>();
  model.graph->name = "graph";
  TENON_RETURN_IF_ERROR(ModelChange(model, graph, !opsets.empty()).Apply());
  TENON_RETURN_IF_ERROR(model.graph->TopologicalOrder());
  return model;
}

Status AddTo(Model& model, const MadeGraph& graph, const OpsetImports& opsets) {
  for (const auto& [domain, version] : opsets) {
    const auto [import, is_new] = model.opsets.emplace(domain, version);
    if (is_new || import->second == version) continue;
    return InvalidArgument("the model imports version {} of domain '{}', got version {}",
                           import->second, domain, version);
  }
  TENON_RETURN_IF_ERROR(ModelChange(model, graph, true).Apply());
  TENON_RETURN_IF_ERROR(model.graph->TopologicalOrder());
  return OkStatus();
}

}  // namespace tenon::capi
