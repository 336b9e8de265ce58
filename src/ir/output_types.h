// What the type constraints of a schema say about the outputs of a node.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Gives each output of `node` whose type is not known the type that its schema derives from the
// types of the inputs: the same constraint means the same type. A node without schema gives its
// outputs the element type of its first input. Shapes are not touched.
void SetOutputTypes(Graph& graph, const Node& node);

}  // namespace tenon
