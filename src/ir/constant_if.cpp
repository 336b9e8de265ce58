#include "ir/passes.h"
#include "ir/splice.h"

namespace tenon {
namespace {

// The branch that is always taken; null if the condition is not constant.
const Graph* TakenBranch(const Graph& graph, const Node& node) {
  if (node.op_type != "If" || !node.domain.empty() || !node.has_input(0)) return nullptr;
  const Tensor* condition = graph.ConstantOf(node.inputs[0]);
  if (!condition || condition->type() != DataType::kBool || condition->size() != 1) return nullptr;
  const Attribute* branch =
      node.FindAttribute(*condition->data<bool>() ? "then_branch" : "else_branch");
  const auto* held = branch ? branch->get<std::unique_ptr<Graph>>() : nullptr;
  return held ? held->get() : nullptr;
}

}  // namespace

Status InlineConstantIfs(Graph& graph, size_t* changes) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    if (const Graph* branch = TakenBranch(graph, *node)) {
      SpliceOptions options;
      if (!node->name.empty()) options.prefix = node->name + "/";
      options.provider = node->provider;
      TENON_RETURN_IF_ERROR(ReplaceByBody(graph, node->id, *branch, {}, options));
      ++*changes;
      continue;
    }
    for (Graph* subgraph : node->Subgraphs()) {
      TENON_RETURN_IF_ERROR(InlineConstantIfs(*subgraph, changes));
    }
  }
  return OkStatus();
}

}  // namespace tenon
