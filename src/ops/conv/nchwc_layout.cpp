#include "ops/conv/nchwc_layout.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "ir/graph.h"
#include "ir/rewrite_limit.h"
#include "ops/conv/nchwc.h"
#include "ops/conv/nchwc_candidates.h"

namespace tenon {
namespace {

class NchwcLayout {
 public:
  NchwcLayout(Graph& graph, int32_t provider) : graph_(graph), provider_(provider) {}

  void Apply() {
    Result<std::vector<NodeId>> order = graph_.TopologicalOrder();
    if (!order) return;  // the planner reports the error
    order_ = std::move(*order);
    FindCandidates();
    if (candidates_.empty()) return;
    DropUnprofitable();
    for (const NodeId id : order_) {
      const auto found = candidates_.find(id);
      if (found != candidates_.end()) Convert(graph_.node(id), found->second);
    }
    ReorderOutputs();
  }

 private:
  bool IsBlocked(ValueId id) const {
    return id != ValueId::kNone && candidates_.contains(graph_.value(id).producer);
  }

  void FindCandidates() {
    regions_.resize(graph_.node_capacity());
    std::iota(regions_.begin(), regions_.end(), size_t{0});
    const auto is_blocked = [this](ValueId id) { return IsBlocked(id); };
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (node.provider != provider_) continue;
      auto candidate = FindNchwcCandidate(graph_, node, is_blocked);
      if (!candidate || !RewriteLimit::Allows("NchwcLayout", node)) continue;
      for (const size_t i : candidate->inputs) {
        if (IsBlocked(node.inputs[i])) Join(id, graph_.value(node.inputs[i]).producer);
      }
      candidates_.emplace(id, std::move(*candidate));
    }
  }

  // Regions are sets of nodes that are connected by blocked values; one node identifies each.
  size_t RegionOf(NodeId id) {
    size_t region = Index(id);
    while (regions_[region] != region) region = regions_[region] = regions_[regions_[region]];
    return region;
  }
  void Join(NodeId a, NodeId b) { regions_[RegionOf(a)] = RegionOf(b); }

  bool ReadsBlocked(NodeId consumer, ValueId id) const {
    const auto found = candidates_.find(consumer);
    if (found == candidates_.end()) return false;
    // All uses of the value in the node, so that none needs the nchw one.
    const Node& node = graph_.node(consumer);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto& blocked = found->second.inputs;
      if (node.inputs[i] == id && std::find(blocked.begin(), blocked.end(), i) == blocked.end()) {
        return false;
      }
    }
    return true;
  }

  bool IsReadInNchw(ValueId id) const {
    const ValueInfo& value = graph_.value(id);
    return value.output_uses > 0 ||
           !std::all_of(value.consumers.begin(), value.consumers.end(),
                        [&](NodeId consumer) { return ReadsBlocked(consumer, id); });
  }

  void DropUnprofitable() {
    std::unordered_map<size_t, double> gain;
    std::unordered_map<size_t, std::vector<ValueId>> read;
    for (const auto& [id, candidate] : candidates_) {
      const Node& node = graph_.node(id);
      const size_t region = RegionOf(id);
      gain[region] += candidate.gain;
      if (IsReadInNchw(node.outputs[0])) {
        gain[region] -= ReorderCost(graph_.value(node.outputs[0]).type);
      }
      for (const size_t i : candidate.inputs) {
        if (!IsBlocked(node.inputs[i])) read[region].push_back(node.inputs[i]);
      }
    }
    for (auto& [region, values] : read) {
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
      for (const ValueId id : values) gain[region] -= ReorderCost(graph_.value(id).type);
    }
    std::erase_if(candidates_,
                  [&](const auto& candidate) { return !(gain[RegionOf(candidate.first)] > 0); });
  }

  Node& AddNode(std::string op_type, ValueId input, ValueId output, std::string name) {
    NodeSpec spec;
    spec.op_type = std::move(op_type);
    spec.domain = kNchwcDomain;
    spec.inputs = {input};
    spec.outputs = {output};
    spec.name = std::move(name);
    spec.opset = 1;
    Node& node = graph_.AddNode(std::move(spec));
    node.provider = provider_;
    return node;
  }

  ValueId NewTwin(ValueId id) {
    const ValueInfo& nchw = graph_.value(id);
    ValueType type = nchw.type;
    type.shape = BlockedShape(*nchw.type.shape);
    const ValueId twin = graph_.AddValue(graph_.UnusedName(nchw.name + "/nchwc"), std::move(type));
    twins_.emplace(id, twin);
    return twin;
  }

  // The blocked form of a value.
  ValueId TwinOf(ValueId id) {
    const auto found = twins_.find(id);
    if (found != twins_.end()) return found->second;
    const ValueId twin = NewTwin(id);
    AddNode("NchwcReorderInput", id, twin, graph_.value(id).name + "/reorder");
    return twin;
  }

  // The node keeps its id; its output becomes the twin of its former output.
  void Convert(Node& node, const NchwcCandidate& candidate) {
    const ValueId nchw = node.outputs[0];
    const NodeId id = node.id;
    for (const size_t i : candidate.inputs) {
      graph_.SetInput(id, i, TwinOf(node.inputs[i]));
    }
    SetOperator(node, candidate.role, graph_.value(nchw));
    graph_.SetOutputValue(id, 0, NewTwin(nchw));
    converted_.push_back(nchw);
  }

  void SetOperator(Node& node, NchwcRole role, const ValueInfo& nchw) {
    if (role == NchwcRole::kAsItIs) return;
    if (role == NchwcRole::kConcat) {
      node.SetAttribute("axis", int64_t{1});
      return;
    }
    node.domain = kNchwcDomain;
    node.opset = 1;
    node.schema = nullptr;
    if (role == NchwcRole::kConv) {
      node.op_type = "NchwcConv";
      return;
    }
    node.SetAttribute("channels", (*nchw.type.shape)[1].value());
    if (role == NchwcRole::kMaxPool) {
      node.op_type = "NchwcMaxPool";
    } else if (role == NchwcRole::kAveragePool) {
      node.op_type = "NchwcAveragePool";
    } else {
      node.op_type = "NchwcGlobalAveragePool";
      node.RemoveAttribute("axes");
      node.RemoveAttribute("keepdims");
      node.RemoveAttribute("noop_with_empty_axes");
      if (node.has_input(1)) graph_.SetInput(node.id, 1, ValueId::kNone);
    }
  }

  // NCHW values that are still read come from their twins.
  void ReorderOutputs() {
    for (const ValueId id : converted_) {
      if (graph_.IsUnused(id)) continue;
      const int64_t channels = (*graph_.value(id).type.shape)[1].value();
      Node& node =
          AddNode("NchwcReorderOutput", twins_.at(id), id, graph_.value(id).name + "/reorder");
      node.SetAttribute("channels", channels);
    }
  }

  Graph& graph_;
  const int32_t provider_;
  std::vector<NodeId> order_;
  std::unordered_map<NodeId, NchwcCandidate> candidates_;
  std::vector<size_t> regions_;
  std::unordered_map<ValueId, ValueId> twins_;
  std::vector<ValueId> converted_;
};

}  // namespace

void UseNchwcLayout(Graph& graph, int32_t provider) {
  NchwcLayout(graph, provider).Apply();
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) UseNchwcLayout(*subgraph, provider);
  }
}

}  // namespace tenon
