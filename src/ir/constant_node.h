// The Constant operator, whose output is one of its attributes.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Whether `node` is ai.onnx's Constant.
bool IsConstantNode(const Node& node);

// Gives the attribute `value` of a Constant that is no tensor, as some programs write it, the name
// for its type.
void NormalizeConstantNode(Node& node);

// The output of Constant-1 to Constant-25: a tensor, or a sparse tensor. Error: kInvalidArgument
// if not exactly one of its attributes has a value.
Result<Value> ValueOfConstantNode(const Node& node);

}  // namespace tenon
