#include "capi/session/assigned_nodes.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"
#include "runtime/session.h"

namespace tenon::capi {
namespace {

OrtStatus* GetText(const OrtEpAssignedNode* node, std::string OrtEpAssignedNode::*field,
                   const char** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(node);
    TENON_RETURN_IF_NULL(out);
    *out = (node->*field).c_str();
    return OkStatus();
  });
}

}  // namespace

void AssignedNodes::Record(const Session& session) {
  is_recorded_ = true;
  std::vector<OrtEpAssignedSubgraph> by_provider(session.providers().size());
  const Graph& graph = *session.model().graph;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr || node->provider < 0) continue;
    auto& nodes = by_provider[static_cast<size_t>(node->provider)].nodes;
    const auto fused = session.fused_nodes().find(node->name);
    if (fused == session.fused_nodes().end()) {
      nodes.push_back({node->name, node->domain, node->op_type});
      continue;
    }
    for (const NodeLabel& label : fused->second) {
      nodes.push_back({label.name, label.domain, label.op_type});
    }
  }
  for (size_t i = 0; i < by_provider.size(); ++i) {
    if (by_provider[i].nodes.empty()) continue;
    by_provider[i].ep_name = session.providers()[i]->name();
    OrtEpAssignedSubgraph& subgraph = subgraphs_.emplace_back(std::move(by_provider[i]));
    for (const OrtEpAssignedNode& node : subgraph.nodes) subgraph.node_handles.push_back(&node);
    handles_.push_back(&subgraph);
  }
}

OrtStatus* EpAssignedSubgraph_GetEpName(const OrtEpAssignedSubgraph* ep_subgraph,
                                        const char** out) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_subgraph);
    TENON_RETURN_IF_NULL(out);
    *out = ep_subgraph->ep_name.c_str();
    return OkStatus();
  });
}

OrtStatus* EpAssignedSubgraph_GetNodes(const OrtEpAssignedSubgraph* ep_subgraph,
                                       const OrtEpAssignedNode* const** ep_nodes,
                                       size_t* num_ep_nodes) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(ep_subgraph);
    TENON_RETURN_IF_NULL(ep_nodes);
    TENON_RETURN_IF_NULL(num_ep_nodes);
    *ep_nodes = ep_subgraph->node_handles.data();
    *num_ep_nodes = ep_subgraph->node_handles.size();
    return OkStatus();
  });
}

OrtStatus* EpAssignedNode_GetName(const OrtEpAssignedNode* ep_node, const char** out) noexcept {
  return GetText(ep_node, &OrtEpAssignedNode::name, out);
}

OrtStatus* EpAssignedNode_GetDomain(const OrtEpAssignedNode* ep_node, const char** out) noexcept {
  return GetText(ep_node, &OrtEpAssignedNode::domain, out);
}

OrtStatus* EpAssignedNode_GetOperatorType(const OrtEpAssignedNode* ep_node,
                                          const char** out) noexcept {
  return GetText(ep_node, &OrtEpAssignedNode::op_type, out);
}

}  // namespace tenon::capi
