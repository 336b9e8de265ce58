// Lets operators without a kernel for 16-bit floats run in float32.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Nodes of `graph` and its subgraphs that nobody owns and that read or write float16 or bfloat16
// tensors work on float32 instead: Casts bring their inputs to float32 and their outputs back. What
// one such node hands to another is not rounded in between. Returns how many nodes changed.
size_t WidenHalf(Graph& graph);

}  // namespace tenon
