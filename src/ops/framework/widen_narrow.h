// Lets operators without a kernel for 16-bit, 8-bit or packed elements run on wider ones.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Nodes of `graph` and its subgraphs that nobody owns and that read or write tensors of narrow
// elements work on wider ones instead, float32 for floats below 32 bits and 8-bit integers for
// packed ones: Casts bring their inputs there and their outputs back. What one such node hands to
// another is not rounded in between. Returns how many nodes changed.
size_t WidenNarrow(Graph& graph);

// Whether a node that the provider could run on 16-bit floats as they are is better left to
// WidenNarrow: what it chooses from was computed in float32 and goes on in float32, so that casts
// are saved and nothing is rounded in between. Also an Attention whose values or mask are not of
// the query's type.
bool IsBetterWide(const Graph& graph, const Node& node);

}  // namespace tenon
