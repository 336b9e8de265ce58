// Says which operators on dequantized values run in integers, and why others do not.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace tenon {

class Graph;

// QuantizeLinear and DequantizeLinear nodes in the graph and its subgraphs.
size_t CountQuantizers(const Graph& graph);

// A line for each of those nodes that stayed when the fusions of quantized operators were applied:
// "DequantizeLinear-13 node 'd': Where-16 node 'w' has no form on integers".
std::vector<std::string> DescribeQuantizers(const Graph& graph);

}  // namespace tenon
