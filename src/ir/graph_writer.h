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

Status WriteFunction(const Function& function, WriteContext& context,
                     MessageBuilder<FunctionField>& message);

}  // namespace tenon
