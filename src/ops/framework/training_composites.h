// Compositions of operators that training graphs have.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Replaces a node of com.microsoft by simpler operators, if it has a composition here.
bool ExpandTrainingComposite(Graph& graph, NodeId id);

}  // namespace tenon
