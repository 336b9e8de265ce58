#include "ir/extraction.h"

#include <algorithm>

#include "ir/splice.h"

namespace tenon {
namespace {

class Extractor {
 public:
  Extractor(Graph& graph, const ExtractionSpec& spec)
      : graph_(graph), spec_(spec), is_member_(graph.node_capacity(), false) {}

  Result<Extraction> Extract(std::span<const NodeId> nodes) {
    TENON_RETURN_IF_ERROR(MarkMembers(nodes));
    TENON_RETURN_IF_ERROR(CheckNothingBetween());
    FindBorder();
    Extraction extraction;
    TENON_ASSIGN_OR_RETURN(extraction.body, MakeBody());
    extraction.call = Replace();
    return extraction;
  }

 private:
  bool IsMember(NodeId id) const { return id != NodeId::kNone && is_member_[Index(id)]; }

  Status MarkMembers(std::span<const NodeId> nodes) {
    if (nodes.empty()) return InvalidGraph("a group of nodes to fuse is empty");
    for (const NodeId id : nodes) {
      if (Index(id) >= graph_.node_capacity() || graph_.FindNode(id) == nullptr) {
        return InvalidGraph("node {} of a group to fuse is not in graph '{}'", Index(id),
                            graph_.name);
      }
      if (IsMember(id)) {
        return InvalidGraph("{} is in a group to fuse twice", graph_.node(id).Describe());
      }
      is_member_[Index(id)] = true;
    }
    TENON_ASSIGN_OR_RETURN(order_, graph_.TopologicalOrder());
    std::copy_if(order_.begin(), order_.end(), std::back_inserter(members_),
                 [&](NodeId id) { return IsMember(id); });
    return OkStatus();
  }

  // No path may leave the group and return to it.
  Status CheckNothingBetween() const {
    std::vector<bool> comes_after(graph_.node_capacity(), false);  // of nodes outside
    for (const NodeId id : order_) {
      const Node& node = graph_.node(id);
      for (const NodeId producer : ProducersOf(node)) {
        if (comes_after[Index(producer)]) {
          if (IsMember(id)) {
            return InvalidGraph("{} cannot be fused with nodes that {} comes after",
                                node.Describe(), graph_.node(producer).Describe());
          }
          comes_after[Index(id)] = true;
        }
        if (IsMember(producer) && !IsMember(id)) comes_after[Index(id)] = true;
      }
    }
    return OkStatus();
  }

  // The values that it reads or that its subgraphs capture.
  std::vector<NodeId> ProducersOf(const Node& node) const {
    std::vector<NodeId> producers;
    for (const ValueId id : ReadsOf(node)) {
      const NodeId producer = graph_.value(id).producer;
      if (producer != NodeId::kNone) producers.push_back(producer);
    }
    return producers;
  }

  static std::vector<ValueId> ReadsOf(const Node& node) {
    std::vector<ValueId> reads;
    for (const ValueId id : node.inputs) {
      if (id != ValueId::kNone) reads.push_back(id);
    }
    for (const Graph* subgraph : node.Subgraphs()) {
      for (const Capture& capture : subgraph->captures) reads.push_back(capture.outer);
    }
    return reads;
  }

  void FindBorder() {
    std::vector<bool> is_known(graph_.value_count(), false);
    for (const NodeId id : members_) {
      const Node& node = graph_.node(id);
      for (const ValueId read : ReadsOf(node)) {
        const ValueInfo& info = graph_.value(read);
        if (IsMember(info.producer) || is_known[Index(read)]) continue;
        is_known[Index(read)] = true;
        (graph_.ConstantOf(read) ? constants_ : inputs_).push_back(read);
      }
      for (const ValueId made : node.outputs) {
        if (made == ValueId::kNone) continue;
        const ValueInfo& info = graph_.value(made);
        const bool is_read = std::any_of(info.consumers.begin(), info.consumers.end(),
                                         [&](NodeId reader) { return !IsMember(reader); });
        if (is_read || info.output_uses > 0) outputs_.push_back(made);
      }
    }
  }

  Result<std::unique_ptr<Graph>> MakeBody() const {
    auto body = std::make_unique<Graph>();
    body->name = spec_.name;
    TENON_ASSIGN_OR_RETURN(const std::vector<ValueId> map, CopyNodes(graph_, members_, *body));
    for (const ValueId input : inputs_) body->AddInput(map[Index(input)]);
    for (const ValueId output : outputs_) {
      body->AddOutput(graph_.value(output).name, map[Index(output)]);
    }
    return body;
  }

  NodeId Replace() {
    for (auto id = members_.rbegin(); id != members_.rend(); ++id) graph_.RemoveNode(*id);
    std::vector<ValueId> inputs = inputs_;
    if (spec_.constants_are_inputs) {
      inputs.insert(inputs.end(), constants_.begin(), constants_.end());
    }
    Node& call = graph_.AddNode({.op_type = spec_.op_type,
                                 .domain = spec_.domain,
                                 .inputs = std::move(inputs),
                                 .outputs = outputs_,
                                 .name = spec_.name,
                                 .opset = 1});
    call.provider = spec_.provider;
    return call.id;
  }

  Graph& graph_;
  const ExtractionSpec& spec_;
  std::vector<bool> is_member_;  // by node
  std::vector<NodeId> order_;    // of all nodes
  std::vector<NodeId> members_;  // in order
  std::vector<ValueId> inputs_, constants_, outputs_;
};

}  // namespace

Result<Extraction> ExtractNodes(Graph& graph, std::span<const NodeId> nodes,
                                const ExtractionSpec& spec) {
  return Extractor(graph, spec).Extract(nodes);
}

Status PutBack(Graph& graph, const Extraction& extraction) {
  std::vector<ValueId> inputs = graph.node(extraction.call).inputs;
  inputs.resize(extraction.body->inputs.size());
  return ReplaceByBody(graph, extraction.call, *extraction.body, std::move(inputs), {});
}

}  // namespace tenon
