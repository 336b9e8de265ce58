// Writes graphs, nodes and attributes.
#pragma once

#include "base/status.h"
#include "ir/message_writers.h"
#include "ir/model.h"
#include "ir/value_names.h"

namespace tenon {

// Where a graph is written, like GraphScope of the reader.
struct WriteScope {
  // Of the model or function. Missing domains that nodes use are added.
  OpsetImports* opsets = nullptr;
  WriteContext* context = nullptr;
};

// Nodes are written in topological order. Errors: cycles, nodes whose operator means another schema
// under the imported opset, and those of WriteTensor.
Status WriteGraph(const Graph& graph, const ValueNames* outer, const WriteScope& scope,
                  MessageBuilder<GraphField>& message);

// Ensures that the node's operator has the same meaning in the file as in the graph; adds its
// domain to the imports if it is missing. Error: kInvalidGraph if the imported version means
// another one.
Status ImportOperator(const Node& node, OpsetImports& opsets);

// The version of Identity nodes if the model does not import their domain.
inline constexpr int32_t kIdentityOpset = 13;

// Whether an Identity node can make output `i`: kInvalidGraph if another value has its name.
Status CheckIdentity(const Graph& graph, const ValueNames& names, size_t i);

Status WriteFunction(const Function& function, WriteContext& context,
                     MessageBuilder<FunctionField>& message);

}  // namespace tenon
