#include <algorithm>

#include "ir/batch_normalization.h"
#include "ir/passes.h"
#include "ir/schema.h"

namespace tenon {
namespace {

bool IsOptionalOutput(const Node& node, size_t i) {
  return node.schema && i < node.schema->outputs.size() &&
         node.schema->outputs[i].kind == FormalKind::kOptional;
}

bool IsKept(const Node& node) { return node.schema && node.schema->yields; }

class DeadCode {
 public:
  explicit DeadCode(Graph& graph) : graph_(graph) {}

  size_t Remove() {
    for (size_t i = 0; i < graph_.node_capacity(); ++i) {
      if (graph_.FindNode(static_cast<NodeId>(i))) Visit(static_cast<NodeId>(i));
    }
    while (!pending_.empty()) {
      const NodeId id = pending_.back();
      pending_.pop_back();
      if (graph_.FindNode(id)) Visit(id);
    }
    DropInitializers();
    return changes_;
  }

 private:
  void Visit(NodeId id) {
    const bool is_used = std::any_of(
        graph_.node(id).outputs.begin(), graph_.node(id).outputs.end(),
        [&](ValueId output) { return output != ValueId::kNone && !graph_.IsUnused(output); });
    if (is_used || IsKept(graph_.node(id))) {
      DropOptionalOutputs(id);
      CleanSubgraphs(id);
      return;
    }
    AwaitProducers(graph_.node(id).inputs);
    for (const Graph* subgraph : graph_.node(id).Subgraphs()) {
      for (const Capture& capture : subgraph->captures) AwaitProducers({capture.outer});
    }
    graph_.RemoveNode(id);
    ++changes_;
  }

  void AwaitProducers(const std::vector<ValueId>& values) {
    for (const ValueId value : values) {
      if (value == ValueId::kNone) continue;
      const NodeId producer = graph_.value(value).producer;
      if (producer != NodeId::kNone) pending_.push_back(producer);
    }
  }

  // Whether the node does something else with fewer outputs.
  static bool OutputsMatter(const Node& node) {
    return node.op_type == "BatchNormalization" && node.domain.empty() &&
           node.opset < kFirstWithTrainingMode && UsesBatchStatistics(node);
  }

  void DropOptionalOutputs(NodeId id) {
    if (OutputsMatter(graph_.node(id))) return;
    for (size_t i = 0; i < graph_.node(id).outputs.size(); ++i) {
      const Node& node = graph_.node(id);
      if (node.has_output(i) && IsOptionalOutput(node, i) && graph_.IsUnused(node.outputs[i])) {
        graph_.SetOutputValue(id, i, ValueId::kNone);
        ++changes_;
      }
    }
  }

  void CleanSubgraphs(NodeId id) {
    bool lost_captures = false;
    for (Graph* subgraph : graph_.node(id).Subgraphs()) {
      changes_ += DeadCode(*subgraph).Remove();
      const size_t dropped = std::erase_if(subgraph->captures, [&](const Capture& capture) {
        if (!subgraph->IsUnused(capture.inner)) return false;
        AwaitProducers({capture.outer});
        return true;
      });
      changes_ += dropped;
      lost_captures = lost_captures || dropped > 0;
    }
    if (lost_captures) graph_.RefreshCaptures(id);
  }

  void DropInitializers() {
    for (size_t i = 0; i < graph_.value_count(); ++i) {
      const auto id = static_cast<ValueId>(i);
      const ValueInfo& info = graph_.value(id);
      if (info.initializer.has_value() && !info.is_input && graph_.IsUnused(id)) {
        graph_.RemoveInitializer(id);
        ++changes_;
      }
    }
  }

  Graph& graph_;
  std::vector<NodeId> pending_;
  size_t changes_ = 0;
};

}  // namespace

size_t RemoveDeadCode(Graph& graph) { return DeadCode(graph).Remove(); }

}  // namespace tenon
