#include "runtime/preferred_layout.h"

#include <algorithm>

#include "ir/channels_last.h"

namespace tenon {
namespace {

// The claimed nodes of `graph` that have no provider yet, in the order of their ids.
std::vector<NodeId> FreeNodes(const Graph& graph, const std::vector<Claim>& claims) {
  std::vector<NodeId> nodes;
  for (const Claim& claim : claims) {
    for (const NodeId id : claim.nodes) {
      const Node* const node = Index(id) < graph.node_capacity() ? graph.FindNode(id) : nullptr;
      if (node != nullptr && node->provider < 0) nodes.push_back(id);
    }
  }
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  return nodes;
}

// The nodes among `nodes` for which the provider wants the channels last.
Result<std::vector<NodeId>> NodesToTurn(ExecutionProvider& provider, const Graph& graph,
                                        const std::vector<NodeId>& nodes) {
  std::vector<NodeId> turning;
  for (const NodeId id : nodes) {
    if (!MayPutChannelsLast(graph, graph.node(id))) continue;
    TENON_ASSIGN_OR_RETURN(const bool turns, provider.WantsChannelsLast(graph.node(id)));
    if (turns) turning.push_back(id);
  }
  return turning;
}

}  // namespace

Status ClaimInPreferredLayout(ExecutionProvider& provider, Graph& graph,
                              Result<std::vector<Claim>>& claims) {
  claims = provider.GetCapability(graph);
  if (!claims || claims->empty()) return OkStatus();
  TENON_ASSIGN_OR_RETURN(const bool prefers, provider.PrefersChannelsLast());
  if (!prefers) return OkStatus();
  const std::vector<NodeId> claimed = FreeNodes(graph, *claims);
  TENON_ASSIGN_OR_RETURN(std::vector<NodeId> turned, NodesToTurn(provider, graph, claimed));
  if (turned.empty()) return OkStatus();
  ChannelLayout layout(graph, claimed);
  for (const NodeId id : turned) layout.PutChannelsLast(id);
  layout.Settle();
  claims = provider.GetCapability(graph);
  if (claims) {
    const std::vector<NodeId> taken = FreeNodes(graph, *claims);
    std::erase_if(turned,
                  [&](NodeId id) { return std::binary_search(taken.begin(), taken.end(), id); });
  }
  if (turned.empty()) return OkStatus();
  for (const NodeId id : turned) layout.PutChannelsFirst(id);
  layout.Settle();
  if (claims) claims = provider.GetCapability(graph);
  return OkStatus();
}

}  // namespace tenon
