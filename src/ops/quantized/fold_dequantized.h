// Quantized weights as floats.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Replaces each DequantizeLinear of `provider` whose inputs are constants, int8 or uint8 with
// scales for the tensor or along an axis, by the floats, in `graph` and its subgraphs. Otherwise
// each run would make them, and kernels could not pack them. `budget`: the bytes that this may add,
// which becomes less. Blocks of scales stay, because their weights are small on purpose. Returns
// how many nodes were replaced.
size_t FoldDequantized(Graph& graph, int32_t provider, size_t& budget);

}  // namespace tenon
