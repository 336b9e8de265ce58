// Whether a node's inputs are of types that its operator takes.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Checks the inputs whose types are known against the type constraints of the node's schema, and
// inputs of one constraint against each other; those that may not be left out are there, also where
// the call of a function left them out. Types that only later versions of the operator take
// pass too: kernels are not older than the newest version; so does any float where an operator
// beyond the standard takes some. Error: kInvalidGraph saying what was expected and got.
Status CheckTypes(const Graph& graph, const Node& node);

}  // namespace tenon
