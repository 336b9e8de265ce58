// Copies the nodes of one graph into another: inlining of functions, operators and branches.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace tenon {

// What stands for an attribute of the function in whose body a node refers to it; null: nothing.
using ResolveAttribute = std::function<const Attribute*(const std::string& name)>;

struct SpliceOptions {
  // In front of the names of copied values and nodes.
  std::string prefix;
  // Null outside of functions.
  ResolveAttribute resolve;
  int32_t provider = -1;
};

// Replaces `call`, a node of `graph`, by the nodes of `body`. `inputs` stand for the inputs of
// `body`, in order; those that it does not have are left out. Captures of `body`, if it is a
// subgraph of `call`, stand for what they capture. The outputs of `call` become those of `body`.
// Error: kInvalidGraph if the numbers of inputs or outputs do not fit, or a subgraph of a function
// refers to an attribute that is a graph.
Status ReplaceByBody(Graph& graph, NodeId call, const Graph& body, std::vector<ValueId> inputs,
                     const SpliceOptions& options);

// Copies nodes, given so that producers come before consumers, into a graph that has none of their
// values. Values keep their names and types, initializers share their memory; subgraphs capture the
// copies. Gives the copy of each value of `from`, kNone for those that the nodes do not touch.
Result<std::vector<ValueId>> CopyNodes(const Graph& from, std::span<const NodeId> nodes, Graph& to);

}  // namespace tenon
