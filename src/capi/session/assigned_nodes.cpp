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
  for (const AssignedGroup& group : session.assignment()) {
    OrtEpAssignedSubgraph& subgraph = subgraphs_.emplace_back();
    subgraph.ep_name = session.providers()[static_cast<size_t>(group.provider)]->name();
    for (const NodeLabel& label : group.nodes) {
      subgraph.nodes.push_back({label.name, label.domain, label.op_type});
    }
    for (const OrtEpAssignedNode& one : subgraph.nodes) subgraph.node_handles.push_back(&one);
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
