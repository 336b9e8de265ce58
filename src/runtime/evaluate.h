// Runs one node by itself: constant folding and tests of single operators.
#pragma once

#include <span>
#include <vector>

#include "runtime/kernel.h"

namespace tenon {

// Runs `kernel`, made for `node` of `graph`. `inputs` has one value per node input, kNone where
// left out. Returns one value per node output, kNone where left out, in lasting memory.
Result<std::vector<Value>> EvaluateNode(const Graph& graph, const Node& node, const Kernel& kernel,
                                        std::span<const Value> inputs, ThreadPool& threads);

}  // namespace tenon
