// The texts of failures at nodes.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "ir/graph.h"

namespace tenon {

// "MatMul-13 node 'ffn'": the operator with the version that defines it, and its domain before it
// unless that is ai.onnx. A node without a name is called by its number: "MatMul-13 node #3".
std::string DescribeOperator(const Node& node);

// The identification of a node: "ffn", or "#3" if it has no name.
std::string NameOrNumber(const Node& node);

// The name of the attribute that holds the i-th of node.Subgraphs().
std::string_view SubgraphName(const Node& node, size_t i);

// `message`, which a shape function or kernel wrote about `node`, with the node before it, the
// names of the inputs and outputs that it mentions, and after it the node's position and inputs:
// "expected input 1 to be ..." becomes
// "MatMul-13 node 'ffn': expected input 1 'w_up' to be ... (node 3 of graph 'main', ai.onnx opset
// 17; inputs: 'x' tensor(float) [8, 768], 'w_up' tensor(float) [512, 3072])".
std::string DescribeFailure(const Graph& graph, const Node& node, std::string_view message);

// The same for a kernel that ran on `inputs` (null: absent), without the node before it. `path` is
// empty, or the path of the graph: "then_branch of If node 'choose'".
std::string DescribeRunFailure(const Graph& graph, const Node& node,
                               std::span<const Value* const> inputs, std::string_view path,
                               std::string_view message);

}  // namespace tenon
