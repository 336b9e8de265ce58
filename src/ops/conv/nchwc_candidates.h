// Finds the nodes that can work on blocked values, and estimates the gain.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "ir/graph.h"

namespace tenon {

enum class NchwcRole { kConv, kMaxPool, kAveragePool, kGlobalAveragePool, kAsItIs, kConcat };

struct NchwcCandidate {
  NchwcRole role = NchwcRole::kAsItIs;
  std::vector<size_t> inputs;  // those that must be blocked; the others stay
  double gain = 0;             // estimated, in nanoseconds of one run
};

// The form of `node` in the blocked layout, or nothing if it cannot be blocked. `is_blocked` says
// whether a value will be available in the blocked layout. Nodes other than convolutions are
// candidates only if all their inputs are.
std::optional<NchwcCandidate> FindNchwcCandidate(const Graph& graph, const Node& node,
                                                 const std::function<bool(ValueId)>& is_blocked);

// Estimated nanoseconds to change the layout of a value once.
double ReorderCost(const ValueType& type);

}  // namespace tenon
