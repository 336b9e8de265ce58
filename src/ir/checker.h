// Checks that a model's nodes are what their operators' schemas allow.
#pragma once

#include "base/status.h"
#include "ir/model.h"

namespace tenon {

struct CheckOptions {
  // Accept opset imports that are newer than the schema table; nodes then have the table's newest
  // version.
  bool allow_newer_opsets = false;
  // Accept operators that the table does not have in its own domains, such as "".
  bool allow_unknown_operators = false;
};

// Checks the main graph, the functions, the training graphs and all subgraphs: IR version, opset
// imports, types of the main graph's inputs, and for every node that its operator exists and is not
// deprecated, the number of its inputs and outputs, and the names and types of its attributes.
// Nodes that call a function of the model are checked against that; nodes of domains that the
// schema table does not know are not checked. Types and shapes are left to InferTypes.
// errors  kInvalidGraph  naming the node, operator and attribute, what was expected and what was
// found
//         kFail          IR version or opset import that is not supported; an operator of com.tenon
//                        (rewrites make those)
Status CheckModel(const Model& model, const CheckOptions& options = {});

}  // namespace tenon
