#include "plugin/capability.h"

#include "capi/boundary/arguments.h"
#include "capi/boundary/slots.h"
#include "capi/boundary/status.h"

namespace tenon::capi {
namespace {

// The node's id in the graph that is claimed from.
Result<NodeId> ClaimedNode(const OrtEpGraphSupportInfo& info, const OrtNode* node) {
  TENON_RETURN_IF_NULL(node);
  if (node->view != &info.view || node->node == nullptr) {
    return InvalidArgument("the node is none of the graph that GetCapability was given");
  }
  return node->node->id;
}

}  // namespace

OrtStatus* EpGraphSupportInfo_AddNodesToFuse(
    OrtEpGraphSupportInfo* graph_support_info, const OrtNode* const* nodes, size_t num_nodes,
    const OrtNodeFusionOptions* node_fusion_options) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(graph_support_info);
    TENON_RETURN_IF_NULL(nodes);
    if (num_nodes == 0) return InvalidArgument("there must be a node to fuse");
    Claim claim;
    claim.fuse = true;
    claim.drop_constants =
        node_fusion_options != nullptr && node_fusion_options->drop_constant_initializers;
    for (size_t i = 0; i < num_nodes; ++i) {
      TENON_ASSIGN_OR_RETURN(const NodeId id, ClaimedNode(*graph_support_info, nodes[i]));
      claim.nodes.push_back(id);
    }
    graph_support_info->claims.push_back(std::move(claim));
    return OkStatus();
  });
}

OrtStatus* EpGraphSupportInfo_AddSingleNode(OrtEpGraphSupportInfo* graph_support_info,
                                            const OrtNode* node) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(graph_support_info);
    TENON_ASSIGN_OR_RETURN(const NodeId id, ClaimedNode(*graph_support_info, node));
    graph_support_info->claims.push_back({{id}});
    return OkStatus();
  });
}

OrtStatus* EpGraphSupportInfo_LookUpKernel(OrtEpGraphSupportInfo* graph_support_info,
                                           const OrtNode* node,
                                           const OrtKernelDef** out_kernel_def) noexcept {
  return AtBoundary([&]() -> Status {
    TENON_RETURN_IF_NULL(graph_support_info);
    TENON_RETURN_IF_NULL(out_kernel_def);
    *out_kernel_def = nullptr;
    TENON_RETURN_IF_ERROR(ClaimedNode(*graph_support_info, node));
    *out_kernel_def = graph_support_info->find_kernel(*node->node);
    return OkStatus();
  });
}

}  // namespace tenon::capi
