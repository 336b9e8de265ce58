// Lets operators without a kernel for 16-bit, 8-bit or packed elements run on wider ones.
#pragma once

#include <unordered_set>

#include "ir/graph.h"

namespace tenon {

// Nodes of `graph` and its subgraphs that have no provider yet and that read or write tensors of
// narrow elements use wider ones instead: float32 for floats below 32 bits, and 8-bit integers for
// packed ones. Casts convert their inputs and outputs, but not those that a kernel takes as they
// are (OpOptions::narrow_inputs), nor large float16 constants of matrix products and convolutions.
// Values between two such nodes are not rounded. Returns how many nodes changed.
// Convolutions that keep float16 weights, which no other provider takes, get this `provider`.
size_t WidenNarrow(Graph& graph, int32_t provider);

// Whether there is a kernel for a node without a provider on the wider elements. It rounds once,
// where the operator's function body rounds each constant and result.
bool CanWiden(const Graph& graph, const Node& node);

// An attribute that WidenNarrow gives to matrix products and convolutions of bfloat16 numbers if
// the processor multiplies such numbers: 1. A kernel may round their operands, as the model did.
constexpr std::string_view kFromBfloat16 = "from_bfloat16";

// Whether a node that the provider could run on 16-bit floats should be left to WidenNarrow,
// whatever makes its inputs: a Where, a product of bfloat16 numbers that the processor does not
// multiply or whose neighbours are computed in float32, and an Attention whose values or mask do
// not have the query's type.
bool IsBetterWide(const Graph& graph, const Node& node);

// The nodes without a provider that should be left to WidenNarrow: those that have no kernel for
// 16-bit floats or are better wide, and those that read no other 16-bit floats than results of such
// nodes, and constants. So casts are saved, and nothing is rounded in between, as in onnxruntime.
std::unordered_set<NodeId> NodesBetterWide(const Graph& graph);

}  // namespace tenon
