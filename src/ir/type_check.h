// Checks that the inputs of a node have types that its operator supports.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Checks the known types of inputs against the type constraints of the node's schema, and inputs of
// one constraint against each other. Required inputs must be present, also if the call of a
// function left them out. Types that only later versions of the operator support pass too, because
// kernels are not older than the newest version; so does any floating-point type if an operator
// beyond the standard supports one. Error: kInvalidGraph with the expected and the actual type.
Status CheckTypes(const Graph& graph, const Node& node);

}  // namespace tenon
