// Finds the nodes that can work on blocked values, and estimates the gain.
#pragma once

#include <functional>
#include <optional>

#include "ops/conv/layout_regions.h"

namespace tenon {

// The form of `node` in the blocked layout, or nothing if it cannot be blocked. `is_blocked` says
// whether a value will be available in the blocked layout. Nodes other than convolutions are
// candidates only if all their inputs are.
std::optional<LayoutCandidate> FindNchwcCandidate(const Graph& graph, const Node& node,
                                                  const std::function<bool(ValueId)>& is_blocked);

// Estimated nanoseconds to change the layout of a value once.
double NchwcReorderCost(const ValueType& type);

}  // namespace tenon
