#include <cstring>
#include <map>
#include <unordered_map>

#include "ir/default_attribute.h"
#include "ir/onnx_reader.h"
#include "ir/passes.h"
#include "ir/schema.h"
#include "ir/splice.h"

namespace tenon {
namespace {

// Bodies use operators that have bodies themselves; ONNX's nest a few levels deep.
constexpr size_t kMostNodesPerOperator = 10'000;

class OperatorExpansion {
 public:
  explicit OperatorExpansion(const std::function<bool(const Graph&, const Node&)>& has_kernel)
      : has_kernel_(has_kernel) {}

  Status Run(Graph& graph) {
    const size_t first_new = graph.node_capacity();
    size_t most = 0;
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const auto id = static_cast<NodeId>(i);
      const Node* node = graph.FindNode(id);
      if (!node) continue;
      const bool has_body = node->schema && !node->schema->function_body.empty();
      if (has_body && !has_kernel_(graph, *node)) {
        // Each node of the model adds at most a bounded number.
        if (i < first_new) most += kMostNodesPerOperator;
        if (graph.node_capacity() - first_new > most) {
          return InvalidGraph("expanding {} does not end", node->Describe());
        }
        TENON_RETURN_IF_ERROR(Expand(graph, *node));
        continue;
      }
      for (Graph* subgraph : node->Subgraphs()) TENON_RETURN_IF_ERROR(Run(*subgraph));
    }
    return OkStatus();
  }

 private:
  Result<const Function*> BodyOf(const OpSchema& schema) {
    const auto known = bodies_.find(&schema);
    if (known != bodies_.end()) return &known->second;
    TENON_ASSIGN_OR_RETURN(Function body,
                           ReadFunction(std::as_bytes(std::span(schema.function_body))));
    return &bodies_.emplace(&schema, std::move(body)).first->second;
  }

  Status Expand(Graph& graph, const Node& node) {
    TENON_ASSIGN_OR_RETURN(const Function* body, BodyOf(*node.schema));
    std::map<std::string, Attribute> defaults;
    SpliceOptions options;
    options.prefix = Format(
        "{}/", node.name.empty() ? Format("{}_{}", node.op_type, Index(node.id)) : node.name);
    options.provider = node.provider;
    options.resolve = [&](const std::string& name) -> const Attribute* {
      if (const Attribute* given = node.FindAttribute(name)) return given;
      for (const Attribute& fallback : body->attributes) {
        if (fallback.name == name) return &fallback;
      }
      const OpAttribute* formal = node.schema->FindAttribute(name);
      if (!formal || !formal->has_default) return nullptr;
      return &defaults.try_emplace(name, DefaultOf(*formal)).first->second;
    };
    const bool is_float =
        node.has_input(0) && graph.value(node.inputs[0]).type.element_type == DataType::kFloat;
    const size_t first_new = graph.node_capacity();
    TENON_RETURN_IF_ERROR(ReplaceByBody(graph, node.id, *body->body, node.inputs, options));
    if (!is_float) MatchConstants(graph, first_new);
    return OkStatus();
  }

  // Bodies such as MeanVarianceNormalization's add constant floats to a value of any type: they are
  // converted to that type. For the nodes from `first_new` on.
  static void MatchConstants(Graph& graph, size_t first_new) {
    const auto is_constant = [&](ValueId id) {
      const NodeId producer = graph.value(id).producer;
      return producer != NodeId::kNone && graph.node(producer).op_type == "Constant";
    };
    const size_t end = graph.node_capacity();
    for (size_t i = first_new; i < end; ++i) {
      const auto id = static_cast<NodeId>(i);
      const Node* const node = graph.FindNode(id);
      if (!node || !node->schema || node->inputs.size() != 2 || node->schema->inputs.size() != 2) {
        continue;
      }
      const bool shares_type = node->schema->inputs[0].type == node->schema->inputs[1].type;
      if (!shares_type || is_constant(node->inputs[0]) || !is_constant(node->inputs[1])) continue;
      const ValueId like = graph.AddValue(graph.UnusedName(graph.value(node->inputs[1]).name));
      const std::vector<ValueId> inputs = {node->inputs[1], node->inputs[0]};
      constexpr int32_t kFirstWithCastLike = 15;
      graph.AddNode({.op_type = "CastLike",
                     .inputs = inputs,
                     .outputs = {like},
                     .opset = kFirstWithCastLike});
      graph.SetInput(id, 1, like);
    }
  }

  const std::function<bool(const Graph&, const Node&)>& has_kernel_;
  std::unordered_map<const OpSchema*, Function> bodies_;
};

}  // namespace

Status ExpandOperators(Graph& graph,
                       const std::function<bool(const Graph&, const Node&)>& has_kernel) {
  return OperatorExpansion(has_kernel).Run(graph);
}

}  // namespace tenon
