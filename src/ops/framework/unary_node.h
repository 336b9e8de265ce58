// Nodes that compute a function of base/unary_functions.inc.
#pragma once

#include <optional>

#include "ir/graph.h"
#include "kernels/elementwise/activation.h"

namespace tenon {

// The function of a node's first input, if it is one of them, element by element.
std::optional<UnaryOp> UnaryOpOf(const Node& node);

// The function with the parameters of such a node: its attributes, else the defaults of the schema,
// else those of the function. Clip's bounds are inputs since opset 11 and are not read.
// Error: kInvalidArgument if an attribute has another type.
Result<kernels::ActivationSpec> UnarySpecOf(const Node& node, UnaryOp op);

// The function and the parameters of such a node of floats, also of a Clip whose bounds are
// constant inputs; nothing if they are not known before a run.
std::optional<kernels::ActivationSpec> KnownUnarySpec(const Graph& graph, const Node& node);

}  // namespace tenon
