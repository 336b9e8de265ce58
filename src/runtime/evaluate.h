// Runs one node by itself: constant folding and tests of single operators.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "runtime/kernel.h"
#include "runtime/uniform_constants.h"
#include "tensor/lasting_memory.h"

namespace tenon {

// Runs `kernel`, made for `node` of `graph`. `inputs` has one value per node input, kNone where
// left out. Returns one value per node output, kNone where left out. Outputs lie in `memory`, or
// share a constant of the same value that `uniform_constants`, if given, has made before. A kernel
// that asks for more scratch memory than `most_scratch` bytes gets none. Error: kFail if the
// thread's StopSignal ended it early, too.
Result<std::vector<Value>> EvaluateNode(
    const Graph& graph, const Node& node, const Kernel& kernel, std::span<const Value> inputs,
    ThreadPool& threads, const std::shared_ptr<Allocator>& memory = SharedLastingMemory(),
    UniformConstants* uniform_constants = nullptr, size_t most_scratch = SIZE_MAX);

}  // namespace tenon
