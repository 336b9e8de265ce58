// The match of a pattern in a graph.
#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/graph.h"
#include "ir/pattern.h"

namespace tenon {

// One place in a graph where a pattern fits.
class Match {
 public:
  const Graph& graph() const { return *graph_; }
  const Node& root() const { return graph_->node(nodes_.front()); }
  // The value bound to `name`; kNone if none is.
  ValueId operator[](std::string_view name) const;
  // The node bound to `name`; null if none is, e.g. in an alternative that was not taken.
  const Node* FindNode(std::string_view name) const;
  // The same if there is one.
  const Node& node(std::string_view name) const { return *FindNode(name); }

  // Of a bound value: its type, its shape if known (else null), its elements if constant (else
  // null), its only element.
  const ValueType& type(std::string_view name) const { return graph_->value((*this)[name]).type; }
  const SymbolicShape* shape(std::string_view name) const;
  const Tensor* constant(std::string_view name) const;
  double scalar(std::string_view name) const;
  // Of the root's first output.
  const ValueType& output_type() const { return graph_->value(root().outputs[0]).type; }

 protected:
  friend class Matcher;
  friend class Rewriting;
  Match() = default;

  const Graph* graph_ = nullptr;
  std::vector<std::pair<std::string_view, ValueId>> values_;
  std::vector<std::pair<std::string_view, NodeId>> named_nodes_;
  std::vector<NodeId> nodes_;     // all that matched, the root first
  std::vector<bool> may_remain_;  // per node: Shared()
};

// Matches `pattern`, a node pattern, at `root`. All nodes must belong to `provider` if it is given.
// Nothing outside the match may use outputs of the nodes inside it, except Shared() ones; the
// others are in one part of the graph.
std::optional<Match> FindMatch(const Graph& graph, const Pattern& pattern, const Node& root,
                               std::optional<int32_t> provider = std::nullopt);

}  // namespace tenon
