#include "ops/conv/layout_regions.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "base/text.h"
#include "ir/rewrite_limit.h"
#include "ir/schema.h"

namespace tenon {
namespace {

class LayoutRegions {
 public:
  LayoutRegions(Graph& graph, int32_t provider, const ImageLayout& layout)
      : graph_(graph), provider_(provider), layout_(layout) {}

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
  bool IsThere(ValueId id) const {
    return id != ValueId::kNone && candidates_.contains(graph_.value(id).producer);
  }

  void FindCandidates() {
    regions_.resize(graph_.node_capacity());
    std::iota(regions_.begin(), regions_.end(), size_t{0});
    const auto is_there = [this](ValueId id) { return IsThere(id); };
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      if (node.provider != provider_) continue;
      auto candidate = layout_.Find(graph_, node, is_there);
      if (!candidate || !RewriteLimit::Allows(layout_.name(), node)) continue;
      for (const size_t i : candidate->inputs) {
        if (IsThere(node.inputs[i])) Join(id, graph_.value(node.inputs[i]).producer);
      }
      candidates_.emplace(id, std::move(*candidate));
    }
  }

  // Regions are sets of nodes that are connected by values in the layout; one node identifies each.
  size_t RegionOf(NodeId id) {
    size_t region = Index(id);
    while (regions_[region] != region) region = regions_[region] = regions_[regions_[region]];
    return region;
  }
  void Join(NodeId a, NodeId b) { regions_[RegionOf(a)] = RegionOf(b); }

  bool ReadsThere(NodeId consumer, ValueId id) const {
    const auto found = candidates_.find(consumer);
    if (found == candidates_.end()) return false;
    // All uses of the value in the node, so that none needs the standard one.
    const Node& node = graph_.node(consumer);
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      const auto& there = found->second.inputs;
      if (node.inputs[i] == id && std::find(there.begin(), there.end(), i) == there.end()) {
        return false;
      }
    }
    return true;
  }

  bool IsReadOutside(ValueId id) const {
    const ValueInfo& value = graph_.value(id);
    return value.output_uses > 0 ||
           !std::all_of(value.consumers.begin(), value.consumers.end(),
                        [&](NodeId consumer) { return ReadsThere(consumer, id); });
  }

  void DropUnprofitable() {
    std::unordered_map<size_t, double> gain;
    std::unordered_map<size_t, std::vector<ValueId>> read;
    for (const auto& [id, candidate] : candidates_) {
      const Node& node = graph_.node(id);
      const size_t region = RegionOf(id);
      gain[region] += candidate.gain;
      for (size_t i = 0; i < candidate.outputs; ++i) {
        if (!IsReadOutside(node.outputs[i])) continue;
        gain[region] -= layout_.ReorderCost(graph_.value(node.outputs[i]).type);
      }
      for (const size_t i : candidate.inputs) {
        if (!IsThere(node.inputs[i])) read[region].push_back(node.inputs[i]);
      }
    }
    for (auto& [region, values] : read) {
      std::sort(values.begin(), values.end());
      values.erase(std::unique(values.begin(), values.end()), values.end());
      for (const ValueId id : values) gain[region] -= layout_.ReorderCost(graph_.value(id).type);
    }
    std::erase_if(candidates_,
                  [&](const auto& candidate) { return !(gain[RegionOf(candidate.first)] > 0); });
  }

  void AddReorder(NodeSpec spec, ValueId input, ValueId output, ValueId standard) {
    spec.inputs = {input};
    spec.outputs = {output};
    spec.name = graph_.value(standard).name + "/reorder";
    Node& node = graph_.AddNode(std::move(spec));
    node.schema = FindSchema(node.domain, node.op_type, node.opset);
    node.provider = provider_;
  }

  ValueId NewTwin(ValueId id) {
    const ValueInfo& standard = graph_.value(id);
    const std::string name = Format("{}/{}", standard.name, layout_.name());
    const ValueId twin = graph_.AddValue(graph_.UnusedName(name), layout_.TypeOf(standard.type));
    twins_.emplace(id, twin);
    return twin;
  }

  // The value in the layout.
  ValueId TwinOf(ValueId id) {
    const auto found = twins_.find(id);
    if (found != twins_.end()) return found->second;
    const ValueId twin = NewTwin(id);
    AddReorder(layout_.ReorderInto(graph_.value(id).type), id, twin, id);
    return twin;
  }

  // The node keeps its id; its outputs become the twins of its former outputs.
  void Convert(Node& node, const LayoutCandidate& candidate) {
    const NodeId id = node.id;
    for (const size_t i : candidate.inputs) {
      graph_.SetInput(id, i, TwinOf(node.inputs[i]));
    }
    layout_.Convert(graph_, node, candidate, graph_.value(node.outputs[0]).type);
    for (size_t i = 0; i < candidate.outputs; ++i) {
      const ValueId standard = node.outputs[i];
      graph_.SetOutputValue(id, i, NewTwin(standard));
      converted_.push_back(standard);
    }
  }

  // Standard values that are still read come from their twins.
  void ReorderOutputs() {
    for (const ValueId id : converted_) {
      if (graph_.IsUnused(id)) continue;
      AddReorder(layout_.ReorderBack(graph_.value(id).type), twins_.at(id), id, id);
    }
  }

  Graph& graph_;
  const int32_t provider_;
  const ImageLayout& layout_;
  std::vector<NodeId> order_;
  std::unordered_map<NodeId, LayoutCandidate> candidates_;
  std::vector<size_t> regions_;
  std::unordered_map<ValueId, ValueId> twins_;
  std::vector<ValueId> converted_;
};

}  // namespace

void UseLayout(Graph& graph, int32_t provider, const ImageLayout& layout) {
  LayoutRegions(graph, provider, layout).Apply();
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) UseLayout(*subgraph, provider, layout);
  }
}

}  // namespace tenon
