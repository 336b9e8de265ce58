// Compositions of nodes that have several outputs.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Puts simpler operators in the place of a node of com.microsoft, if it has a composition here.
bool ExpandNodeComposite(Graph& graph, NodeId id);

}  // namespace tenon
