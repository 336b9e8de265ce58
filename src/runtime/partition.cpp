#include "runtime/partition.h"

#include "ir/schema.h"
#include "runtime/plan.h"

namespace tenon {
namespace {

Status Assign(Graph& graph, ExecutionProvider& provider, int32_t index, const Logger& logger) {
  Result<std::vector<Claim>> claims = provider.GetCapability(graph);
  if (!claims) {
    TENON_LOG(logger, kError, "{} could not say what it runs of graph '{}': {}", provider.name(),
              graph.name, claims.error().message());
    return OkStatus();
  }
  for (const Claim& claim : *claims) {
    if (claim.fuse) return NotImplemented("{} wants to fuse nodes", provider.name());
    for (const NodeId id : claim.nodes) {
      Node* node = Index(id) < graph.node_capacity() ? graph.FindNode(id) : nullptr;
      if (node && node->provider < 0) node->provider = index;
    }
  }
  return OkStatus();
}

std::string WhyNobody(const Graph& graph, const Node& node) {
  const std::string domain = node.domain.empty() ? "ai.onnx" : node.domain;
  if (node.schema == nullptr) {
    return Format("operator {} of domain '{}' is not known at opset {}", node.op_type, domain,
                  node.opset);
  }
  std::string types;
  for (const ValueId input : node.inputs) {
    if (!types.empty()) types += ", ";
    types += input == ValueId::kNone ? "none" : graph.value(input).type.TypeName();
  }
  return Format("no provider has a kernel for inputs ({})", types);
}

}  // namespace

Status AssignNodes(Graph& graph, std::span<const std::unique_ptr<ExecutionProvider>> providers,
                   const Logger& logger) {
  for (size_t i = 0; i < providers.size(); ++i) {
    TENON_RETURN_IF_ERROR(Assign(graph, *providers[i], static_cast<int32_t>(i), logger));
  }
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    for (Graph* subgraph : node->Subgraphs()) {
      TENON_RETURN_IF_ERROR(AssignNodes(*subgraph, providers, logger));
    }
  }
  return OkStatus();
}

Status CheckAllAssigned(const Graph& graph) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    if (node->provider < 0) {
      return NotImplemented("{}: {}", DescribeWithVersion(*node), WhyNobody(graph, *node));
    }
    for (const Graph* subgraph : node->Subgraphs()) {
      TENON_RETURN_IF_ERROR(CheckAllAssigned(*subgraph));
    }
  }
  return OkStatus();
}

}  // namespace tenon
