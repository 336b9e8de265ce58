// Moves convolutions and the nodes around them into the channel-blocked layout.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Converts the float convolutions of `provider` whose weights are constants, and the pools,
// element-wise operators and concatenations after them, to operators of ops/conv/nchwc.h, in
// `graph` and its subgraphs. A region of connected nodes is converted if the estimated gain exceeds
// the cost of the reorders at its borders. Types must have been inferred; those of new values are
// set.
void UseNchwcLayout(Graph& graph, int32_t provider);

}  // namespace tenon
