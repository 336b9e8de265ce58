#include "runtime/partition.h"

#include <algorithm>

#include "ir/channels_last.h"
#include "ir/extraction.h"
#include "ir/node_error.h"
#include "ir/schema.h"
#include "ir/shape_context.h"
#include "ir/unknown_operator.h"
#include "runtime/preferred_layout.h"

namespace tenon {
namespace {

// FNV-1a over the names and types of a model's nodes: the same for the same model.
uint64_t HashOf(const Graph& graph) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto add = [&](std::string_view text) {
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
    hash = (hash ^ 0xff) * 0x100000001b3;
  };
  add(graph.name);
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    add(node->op_type);
    add(node->name);
    for (const ValueId output : node->outputs) {
      if (output != ValueId::kNone) add(graph.value(output).name);
    }
  }
  return hash;
}

Status CheckUnassigned(const Graph& graph, const Claim& claim) {
  for (const NodeId id : claim.nodes) {
    const Node* node = Index(id) < graph.node_capacity() ? graph.FindNode(id) : nullptr;
    if (node && node->provider >= 0) {
      return InvalidGraph("{} belongs to another provider", node->Describe());
    }
  }
  return OkStatus();
}

std::vector<NodeLabel> LabelsOf(const Graph& graph) {
  std::vector<NodeLabel> labels;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node) labels.push_back({node->name, node->domain, node->op_type});
  }
  return labels;
}

// onnxruntime's code for a missing kernel, or for an unknown operator.
StatusCode CodeOfUnassigned(const Node& node) {
  return node.schema == nullptr ? CodeOfUnknown(node) : StatusCode::kNotImplemented;
}

std::string WhyUnassigned(const Node& node, const ShapeFunctionTable& operators) {
  if (node.schema == nullptr) return WhyUnknown(node);
  if (operators.Find(node) == nullptr) return "no provider has a kernel of this operator";
  return "no provider has a kernel for inputs of these types";
}

}  // namespace

Partitioner::Partitioner(const Graph& graph,
                         std::span<const std::unique_ptr<ExecutionProvider>> providers,
                         const Logger& logger, FailedNode* failed, FusedNodes* fused)
    : providers_(providers), logger_(logger), model_(graph), failed_(failed), fused_(fused) {}

Status Partitioner::Assign(Graph& graph) {
  for (size_t i = 0; i < providers_.size(); ++i) TENON_RETURN_IF_ERROR(AssignTo(i, graph));
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    for (Graph* subgraph : node->Subgraphs()) TENON_RETURN_IF_ERROR(Assign(*subgraph));
  }
  return OkStatus();
}

Status Partitioner::AssignTo(size_t index, Graph& graph) {
  ExecutionProvider& provider = *providers_[index];
  Result<std::vector<Claim>> claims;
  TENON_RETURN_IF_ERROR(ClaimInPreferredLayout(provider, graph, claims));
  Result<std::vector<FusedNode>> fused =
      claims ? Fuse(index, graph, *claims) : Failure(std::move(claims.error()));
  if (!fused) {
    TENON_LOG(logger_, kError, "{} could not say what it runs of graph '{}': {}", provider.name(),
              graph.name, fused.error().message());
    // The other providers know the standard's layout.
    PutUnownedChannelsFirst(graph);
    return OkStatus();
  }
  for (const Claim& claim : *claims) {
    for (const NodeId id : claim.nodes) {
      Node* node = Index(id) < graph.node_capacity() ? graph.FindNode(id) : nullptr;
      if (node && node->provider < 0) node->provider = static_cast<int32_t>(index);
    }
  }
  return fused->empty() ? OkStatus() : Compile(index, graph, std::move(*fused));
}

Status Partitioner::Compile(size_t index, const Graph& graph, std::vector<FusedNode> nodes) {
  const NodeId first = nodes.front().id;
  for (const FusedNode& node : nodes) {
    if (fused_ != nullptr) (*fused_)[graph.node(node.id).name] = LabelsOf(*node.body);
  }
  Status status = providers_[index]->Compile(graph, std::move(nodes));
  if (status.ok() || failed_ == nullptr) return status;
  const Node& node = *graph.FindNode(first);
  *failed_ = {.provider = static_cast<int32_t>(index),
              .provider_name = providers_[index]->name(),
              .node = node.name,
              .op_type = node.op_type};
  return status;
}

// Fuses all groups or none: if one cannot be fused, the others are put back.
Result<std::vector<FusedNode>> Partitioner::Fuse(size_t index, Graph& graph,
                                                 std::span<const Claim> claims) {
  const auto fuses = [](const Claim& claim) { return claim.fuse; };
  if (std::none_of(claims.begin(), claims.end(), fuses)) return std::vector<FusedNode>();
  const std::string& provider = providers_[index]->name();
  const uint64_t model = HashOf(model_);
  std::vector<Extraction> done;
  Status status;
  for (const Claim& claim : claims) {
    if (!claim.fuse) continue;
    status = CheckUnassigned(graph, claim);
    if (!status.ok()) break;
    const std::string name = Format("{}_{}_{}", provider, model, fused_nodes_ + done.size());
    Result<Extraction> extraction = ExtractNodes(graph, claim.nodes,
                                                 {.op_type = name,
                                                  .domain = provider,
                                                  .name = name,
                                                  .provider = static_cast<int32_t>(index),
                                                  .constants_are_inputs = !claim.drop_constants});
    if (!extraction) {
      status = std::move(extraction.error());
      break;
    }
    done.push_back(std::move(*extraction));
  }
  std::vector<FusedNode> fused;
  if (status.ok()) {
    fused_nodes_ += static_cast<int>(done.size());
    for (Extraction& one : done) fused.push_back({one.call, std::move(one.body)});
    return fused;
  }
  for (auto one = done.rbegin(); one != done.rend(); ++one) {
    TENON_RETURN_IF_ERROR(PutBack(graph, *one));
  }
  return Failure(std::move(status));
}

Status CheckAllAssigned(const Graph& graph, const ShapeFunctionTable& operators) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    if (node->provider < 0) {
      return Status(CodeOfUnassigned(*node),
                    DescribeFailure(graph, *node, WhyUnassigned(*node, operators)));
    }
    for (const Graph* subgraph : node->Subgraphs()) {
      TENON_RETURN_IF_ERROR(CheckAllAssigned(*subgraph, operators));
    }
  }
  return OkStatus();
}

}  // namespace tenon
