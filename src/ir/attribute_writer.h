// Writes AttributeProto.
#pragma once

#include "base/function_ref.h"
#include "base/status.h"
#include "ir/attribute.h"
#include "ir/message_writers.h"

namespace tenon {

// Writes a graph that an attribute holds.
using SubgraphWriter = FunctionRef<Status(const Graph& graph, MessageBuilder<GraphField>& message)>;

Status WriteAttribute(const Attribute& attribute, SubgraphWriter write_subgraph,
                      WriteContext& context, MessageBuilder<AttributeField>& message);

}  // namespace tenon
