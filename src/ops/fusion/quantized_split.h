// Split of dequantized integers. Rules replace nodes of one output, so this is a pass beside them.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

class Graph;

// Exchanges the Splits of `provider` in `graph`, without its subgraphs, with the DequantizeLinear
// before them, which then comes once after each output. Returns how many.
size_t SplitIntegers(Graph& graph, int32_t provider);

}  // namespace tenon
