// Which nodes of a graph the provider takes, and in what groups.
#pragma once

#include <vector>

#include "graph.h"
#include "target.h"

namespace codegen {

// Groups of nodes (by number), each of which can be fused into one.
std::vector<std::vector<size_t>> GroupsToFuse(const Graph& graph, const Target& target);

// Values of the graph whose contents a plan needs, though they are computed by others: they are
// read from the device before the plan is chosen. Producers within the graph are looked through.
std::vector<bool> ValuesToRead(const Graph& graph, const Target& target);

}  // namespace codegen
