// Writes AttributeProto.
#pragma once

#include "ir/graph_writer.h"

namespace tenon {

// `names` are those of the graph that has the node, for the captures of subgraphs.
Status WriteAttribute(const Attribute& attribute, const ValueNames* names, const WriteScope& scope,
                      MessageBuilder<AttributeField>& message);

}  // namespace tenon
