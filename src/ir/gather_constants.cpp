#include "ir/constant_node.h"
#include "ir/node_error.h"
#include "ir/passes.h"

namespace tenon {
namespace {

Result<size_t> ReplaceConstantNodes(Graph& graph) {
  size_t changes = 0;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node || !IsConstantNode(*node) || !node->has_output(0)) continue;
    const ValueId output = node->outputs[0];
    if (graph.value(output).output_uses > 0) continue;
    Result<Value> value = ValueOfConstantNode(*node);
    if (!value) {
      return InvalidGraph("{}", DescribeFailure(graph, *node, value.error().message()));
    }
    if (value->is_tensor()) {
      graph.value(output).type = ValueType::Tensor(value->tensor().type(), value->tensor().shape());
    }
    graph.RemoveNode(node->id);
    graph.SetInitializer(output, std::move(*value));
    ++changes;
  }
  return changes;
}

// Captures of `graph`'s constants by the subgraphs of a node.
size_t SinkConstants(Graph& graph, const Node& node) {
  size_t changes = 0;
  for (Graph* subgraph : node.Subgraphs()) {
    changes += std::erase_if(subgraph->captures, [&](const Capture& capture) {
      const Tensor* constant = graph.StoredConstantOf(capture.outer);
      if (!constant || subgraph->value(capture.inner).output_uses > 0) return false;
      subgraph->SetInitializer(capture.inner, *constant);
      subgraph->value(capture.inner).type = graph.value(capture.outer).type;
      return true;
    });
  }
  if (changes > 0) graph.RefreshCaptures(node.id);
  return changes;
}

}  // namespace

Result<size_t> GatherConstants(Graph& graph) {
  TENON_ASSIGN_OR_RETURN(size_t changes, ReplaceConstantNodes(graph));
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    changes += SinkConstants(graph, *node);
    for (Graph* subgraph : node->Subgraphs()) {
      TENON_ASSIGN_OR_RETURN(const size_t inside, GatherConstants(*subgraph));
      changes += inside;
    }
  }
  return changes;
}

}  // namespace tenon
