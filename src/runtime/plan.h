// The plan of a graph: what the executor runs, with everything decided that can be decided before
// the first run.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "runtime/kernel.h"
#include "runtime/provider.h"

namespace tenon {

class Executor;

// Index of a value in a frame. -1: an optional input or output left out.
using Slot = int32_t;
inline constexpr Slot kNoSlot = -1;

// One kernel call. Slot lists are ranges of Plan::slots.
struct Step {
  const Node* node = nullptr;
  std::unique_ptr<Kernel> kernel;
  KernelTraits traits;
  uint32_t inputs_begin = 0, inputs_end = 0;
  uint32_t outputs_begin = 0, outputs_end = 0;
  // Slots whose last use is this step.
  uint32_t releases_begin = 0, releases_end = 0;
  // One per subgraph, with the slots of the values that it captures.
  std::vector<std::unique_ptr<Executor>> subgraphs;
  std::vector<std::vector<Slot>> captures;
};

struct PlanOutput {
  std::string name;
  Slot slot = kNoSlot;
};

// Immutable once built; shared by all runs. Borrows the graph, which outlives it.
struct Plan {
  const Graph* graph = nullptr;
  std::vector<Step> steps;
  std::vector<Slot> slots;
  size_t slot_count = 0;
  // Graph inputs in order, then captured values in the order of Graph::captures.
  std::vector<Slot> inputs;
  size_t capture_count = 0;
  std::vector<PlanOutput> outputs;
  // Initializers, by slot; graph inputs with a default value included.
  std::vector<std::pair<Slot, Value>> constants;
  // Those of `constants` that a feed may replace.
  std::vector<std::pair<Slot, Value>> default_inputs;
  // Where intermediate values, outputs and scratch memory of runs come from.
  std::shared_ptr<Allocator> memory;
  // Last step that reads the slot; -1 if none does.
  std::vector<int32_t> last_use;

  std::span<const Slot> InputsOf(const Step& step) const {
    return {slots.data() + step.inputs_begin, slots.data() + step.inputs_end};
  }
  std::span<const Slot> OutputsOf(const Step& step) const {
    return {slots.data() + step.outputs_begin, slots.data() + step.outputs_end};
  }
  std::span<const Slot> ReleasesOf(const Step& step) const {
    return {slots.data() + step.releases_begin, slots.data() + step.releases_end};
  }
};

// Makes every node's kernel through the provider that owns it and lays out the steps.
// `providers` by Node::provider. Constants that every reader packed for itself are dropped from
// `graph`. Runs take their memory from `memory`. Errors: kNotImplemented naming the node that no
// kernel takes; whatever a kernel's preparation finds wrong, with the node in front.
Result<Plan> BuildPlan(Graph& graph, std::span<ExecutionProvider* const> providers,
                       std::shared_ptr<Allocator> memory);

// "Softmax-13 node 'head/probs'": how failures of this node begin.
std::string DescribeWithVersion(const Node& node);

}  // namespace tenon
