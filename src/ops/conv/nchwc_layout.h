// Moves convolutions and what surrounds them into the channel-blocked layout.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Turns the float convolutions of `provider` whose weights are constants, and the pools,
// element-wise operators and concatenations behind them, into operators of ops/conv/nchwc.h, in
// `graph` and its subgraphs. Regions of connected nodes are turned where the estimated gain pays
// for the reorders at their borders. Types must have been inferred; those of new values are set.
void UseNchwcLayout(Graph& graph, int32_t provider);

}  // namespace tenon
