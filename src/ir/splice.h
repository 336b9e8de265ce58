// Copies the nodes of one graph into another: for inlining of functions, operators and branches.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// Replaces an attribute of the function to which a node in its body refers; null: nothing.
using ResolveAttribute = std::function<const Attribute*(const std::string& name)>;

struct SpliceOptions {
  // The prefix of the names of copied values and nodes.
  std::string prefix;
  // Null outside of functions.
  ResolveAttribute resolve;
  int32_t provider = kNoProvider;
};

// Replaces `call`, a node of `graph`, by the nodes of `body`. `inputs` replace the inputs of
// `body`, in order; missing ones are absent. Captures of `body`, if it is a subgraph of `call`,
// become the captured values. The outputs of `call` become those of `body`. Error: kInvalidGraph if
// the numbers of inputs or outputs do not match, or if a subgraph of a function refers to an
// attribute that is a graph.
Status ReplaceByBody(Graph& graph, NodeId call, const Graph& body, std::vector<ValueId> inputs,
                     const SpliceOptions& options);

// Copies nodes, given so that producers come before consumers, into a graph that has none of their
// values. Values keep their names and types, initializers share their memory; subgraphs capture the
// copies. Returns the copy of each value of `from`, and kNone for those that the nodes do not use.
Result<std::vector<ValueId>> CopyNodes(const Graph& from, std::span<const NodeId> nodes, Graph& to);

}  // namespace tenon
