// The types of a node's outputs, from the type constraints of its schema.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Gives each output of `node` whose type is not known the type that its schema derives from the
// types of the inputs: the same constraint means the same type. The outputs of a node without
// schema get the element type of its first input. Shapes do not change.
void SetOutputTypes(Graph& graph, const Node& node);

}  // namespace tenon
