// The text for a node whose operator the schema table does not have.
#pragma once

#include <string>

#include "base/status.h"
#include "ir/graph.h"

namespace tenon {

// Why the table has no schema for the node, in ONNX Runtime's words where it has some:
//   exists since opset 17 of domain 'ai.onnx'; the model imports opset 16
//   com.microsoft:Relux(-1) is not a registered function/op (did you mean 'Relu'?)
std::string WhyUnknown(const Node& node);

// ONNX Runtime's code for it: kInvalidGraph if the domain is one of ONNX, kFail for any other.
StatusCode CodeOfUnknown(const Node& node);

}  // namespace tenon
