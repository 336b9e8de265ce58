// Selects the nodes of a graph that WebNN runs, and groups them.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/logging.h"
#include "ir/graph.h"
#include "webnn/partition.h"

namespace tenon::webnn {

// Nodes that become one partition, in the order of execution.
struct Group {
  std::vector<NodeId> nodes;
  std::string first_node;
};

struct Claims {
  std::vector<Group> groups;
  // Values whose elements follow from constants and from the shapes of the graph's inputs.
  std::set<std::string, std::less<>> derived;
};

// A node is claimed if it can be written into a program by itself. If the graph has sizes that are
// known only in a run, examples are used. Nodes that WebNN lacks, but whose results follow from
// shapes, are added if only claimed nodes read them. Claimed nodes become the fewest groups such
// that no path leaves a group and returns to it. Groups whose first node is among `excluded` are
// left out. `logger` may be null; it is told why nodes are not claimed (verbosity 1).
// Error: a graph with a cycle.
Result<Claims> FindClaims(const Graph& graph, Context& context,
                          const std::set<std::string, std::less<>>& excluded, const Logger* logger);

}  // namespace tenon::webnn
