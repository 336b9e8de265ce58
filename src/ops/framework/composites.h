// Operators of com.microsoft that are graphs of simpler ones.
#pragma once

#include "ir/rewrite.h"

namespace tenon {

// Compositions of nodes with one output. Each is named after its operator.
const RuleSet& CompositeRules();

// Nodes of `graph` and its subgraphs that have no provider yet and that have a composition here are
// replaced by its operators. The types of new values are not inferred. Returns how many changed.
size_t ExpandComposites(Graph& graph);

}  // namespace tenon
