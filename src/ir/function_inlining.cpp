#include <algorithm>
#include <unordered_map>

#include "ir/passes.h"
#include "ir/splice.h"

namespace tenon {
namespace {

// Otherwise a few lines of nested calls could request any number of nodes.
constexpr size_t kMostNodes = 1'000'000;
// Limits recursion, here and over the subgraphs that nested calls may nest.
constexpr size_t kMostLevels = 100;

std::string KeyOf(std::string_view domain, std::string_view name, std::string_view overload) {
  return Format("{}:{}:{}", domain, name, overload);
}

template <class Visit>
void ForEachNode(const Graph& graph, const Visit& visit) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    visit(*node);
    for (const Graph* subgraph : node->Subgraphs()) ForEachNode(*subgraph, visit);
  }
}

class FunctionInliner {
 public:
  explicit FunctionInliner(Model& model) : model_(model) {
    for (const Function& function : model.functions) {
      functions_.emplace(KeyOf(function.domain, function.name, function.overload), &function);
    }
  }

  Status Run() {
    TENON_ASSIGN_OR_RETURN(const size_t nodes, SizeOf(*model_.graph));
    if (nodes > kMostNodes) {
      return InvalidGraph("inlining the model's functions gives more than {} nodes", kMostNodes);
    }
    return Inline(*model_.graph);
  }

 private:
  const Function* FindFunction(const Node& node) const {
    const auto found = functions_.find(KeyOf(node.domain, node.op_type, node.overload));
    return found == functions_.end() ? nullptr : found->second;
  }

  // Nodes of the graph after inlining, saturated at kMostNodes + 1.
  Result<size_t> SizeOf(const Graph& graph) {
    size_t size = 0;
    Status status;
    ForEachNode(graph, [&](const Node& node) {
      if (!status.ok() || size > kMostNodes) return;
      const Function* callee = FindFunction(node);
      const Result<size_t> added = callee ? SizeOf(*callee) : Result<size_t>(1);
      if (!added) {
        status = added.error();
      } else {
        size = std::min(size + *added, kMostNodes + 1);
      }
    });
    TENON_RETURN_IF_ERROR(std::move(status));
    return size;
  }

  Result<size_t> SizeOf(const Function& function) {
    if (const auto known = sizes_.find(&function); known != sizes_.end()) return known->second;
    for (size_t i = 0; i < open_.size(); ++i) {
      if (open_[i] == &function) return Recursion(i);
    }
    if (open_.size() == kMostLevels) {
      return InvalidGraph("functions call each other more than {} levels deep, down to '{}'",
                          kMostLevels, function.name);
    }
    open_.push_back(&function);
    const Result<size_t> size = SizeOf(*function.body);
    open_.pop_back();
    if (size) sizes_[&function] = *size;
    return size;
  }

  Error Recursion(size_t first) const {
    std::string cycle;
    for (size_t i = first; i < open_.size(); ++i) cycle += open_[i]->name + " -> ";
    return InvalidGraph("function '{}' calls itself: {}{}", open_[first]->name, cycle,
                        open_[first]->name);
  }

  // Nodes from a body come later in the same loop.
  Status Inline(Graph& graph) {
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const auto id = static_cast<NodeId>(i);
      const Node* node = graph.FindNode(id);
      if (!node) continue;
      if (const Function* function = FindFunction(*node)) {
        TENON_RETURN_IF_ERROR(InlineCall(graph, *node, *function));
        continue;
      }
      for (Graph* subgraph : node->Subgraphs()) TENON_RETURN_IF_ERROR(Inline(*subgraph));
    }
    return OkStatus();
  }

  static Status InlineCall(Graph& graph, const Node& call, const Function& function) {
    SpliceOptions options;
    options.prefix =
        (call.name.empty() ? Format("{}_{}", call.op_type, Index(call.id)) : call.name) + "/";
    options.provider = call.provider;
    options.resolve = [&](const std::string& name) -> const Attribute* {
      if (const Attribute* given = call.FindAttribute(name)) return given;
      for (const Attribute& fallback : function.attributes) {
        if (fallback.name == name) return &fallback;
      }
      return nullptr;
    };
    return ReplaceByBody(graph, call.id, *function.body, call.inputs, options);
  }

  Model& model_;
  std::unordered_map<std::string, const Function*> functions_;
  std::unordered_map<const Function*, size_t> sizes_;
  std::vector<const Function*> open_;
};

}  // namespace

Status InlineFunctions(Model& model) {
  if (model.functions.empty()) return OkStatus();
  TENON_RETURN_IF_ERROR(FunctionInliner(model).Run());
  model.functions.clear();
  return OkStatus();
}

}  // namespace tenon
