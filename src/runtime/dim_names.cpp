#include "runtime/dim_names.h"

#include <optional>
#include <set>

#include "ir/graph.h"

namespace tenon {

bool HasEqualDimNames(const Graph& graph) {
  std::set<std::string_view> names;
  for (const ValueId id : graph.inputs) {
    const std::optional<SymbolicShape>& shape = graph.value(id).type.shape;
    if (!shape) continue;
    for (const Dim& dim : *shape) {
      const std::string_view name = dim.symbol_name();
      if (name.empty() || IsPlaceholder(name)) continue;
      if (!names.insert(name).second) return true;
    }
  }
  return false;
}

void ForgetDimNames(Graph& graph, DimNames names) {
  for (size_t i = 0; i < graph.value_count(); ++i) {
    std::optional<SymbolicShape>& shape = graph.value(static_cast<ValueId>(i)).type.shape;
    for (size_t axis = 0; shape && axis < shape->rank(); ++axis) {
      Dim& dim = (*shape)[axis];
      const bool is_meant = names == DimNames::kAll || IsPlaceholder(dim.symbol_name());
      if (!dim.is_number() && is_meant) dim = Dim::Unknown();
    }
  }
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* const node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    for (Graph* const subgraph : node->Subgraphs()) ForgetDimNames(*subgraph, names);
  }
}

}  // namespace tenon
