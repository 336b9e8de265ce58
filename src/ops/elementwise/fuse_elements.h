// Element-wise nodes that read each other's results become one pass.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Replaces element-wise nodes of floats of `provider` whose results have the same shape, and are
// read by each other alone, by com.tenon FusedElements, in `graph` and its subgraphs. The results
// stay the same in bits. Returns how many passes were made.
size_t FuseElements(Graph& graph, int32_t provider);

}  // namespace tenon
