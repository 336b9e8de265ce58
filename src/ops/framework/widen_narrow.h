// Lets operators without a kernel for 16-bit, 8-bit or packed elements run on wider ones.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Nodes of `graph` and its subgraphs that have no provider yet and that read or write tensors of
// narrow elements use wider ones instead: float32 for floats below 32 bits, and 8-bit integers for
// packed ones. Casts convert their inputs and outputs, but not those that a kernel takes as they
// are (OpOptions::narrow_inputs). Values between two such nodes are not rounded. Returns how many
// nodes changed.
size_t WidenNarrow(Graph& graph);

// Whether there is a kernel for the node on the wider elements, but none on its own. It rounds
// once, where the operator's function body rounds each constant and result.
bool CanWiden(const Graph& graph, const Node& node);

// An attribute that WidenNarrow gives to matrix products and convolutions of bfloat16 numbers if
// the processor multiplies such numbers: 1. A kernel may round their operands, as the model did.
constexpr std::string_view kFromBfloat16 = "from_bfloat16";

// Whether a node that the provider could run on 16-bit floats should be left to WidenNarrow: its
// inputs were computed in float32 and its outputs are used in float32, so that casts are saved and
// nothing is rounded in between. Also a product of bfloat16 numbers that the processor does not
// multiply, and an Attention whose values or mask do not have the query's
// type.
bool IsBetterWide(const Graph& graph, const Node& node);

}  // namespace tenon
