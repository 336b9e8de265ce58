// How a failure at a node reads.
#pragma once

#include <string>
#include <string_view>

#include "ir/graph.h"

namespace tenon {

// "MatMul-13 node 'ffn'": the operator with the version that defines it.
std::string DescribeOperator(const Node& node);

// `message`, which a shape function or kernel wrote about `node`, with the node in front and with
// the names of the inputs and outputs it speaks of: "expected input 1 to be ..." becomes
// "MatMul-13 node 'ffn': expected input 1 'w_up' to be ...".
std::string DescribeFailure(const Graph& graph, const Node& node, std::string_view message);

}  // namespace tenon
