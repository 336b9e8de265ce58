// Compositions of nodes that have several outputs.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Replaces a node of com.microsoft by simpler operators, if it has a composition here.
bool ExpandNodeComposite(Graph& graph, NodeId id);

}  // namespace tenon
