// The plan of a graph: what the executor runs. All that can be decided before the first run is
// decided here.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "ir/graph.h"
#include "runtime/kernel_traits.h"
#include "runtime/location.h"

namespace tenon {

class DataTransfers;
class ExecutionProvider;
class Frame;
class FramePool;
class Kernel;
struct Plan;
struct RunScope;

// Index of a value in a frame; -1: an optional input or output is left out.
using Slot = int32_t;
inline constexpr Slot kNoSlot = -1;

// A subgraph of a control-flow step, ready to run. Thread-safe.
class StepBody {
 public:
  virtual ~StepBody() = default;
  virtual const Plan& plan() const = 0;
  virtual FramePool& frames() = 0;
  // Runs the subgraph once. A frame of frames() can be used again and again. `feeds` are moved
  // from. Each of `results` becomes a new value; its old memory is reused where it fits and has no
  // other owner.
  virtual Status RunBody(const RunScope& scope, Frame& frame, std::span<Value> feeds,
                         std::span<Value> results) = 0;
};

// One kernel call. Slot lists are ranges of Plan::slots.
struct Step {
  Step();
  Step(Step&&) noexcept;
  Step& operator=(Step&&) noexcept;
  ~Step();

  const Node* node = nullptr;
  std::unique_ptr<Kernel> kernel;
  KernelTraits traits;
  uint32_t inputs_begin = 0, inputs_end = 0;
  uint32_t outputs_begin = 0, outputs_end = 0;
  // Slots whose last use is this step.
  uint32_t releases_begin = 0, releases_end = 0;
  // A range of Plan::in_place.
  uint32_t in_place_begin = 0, in_place_end = 0;
  // One per subgraph, with the slots of the values that it captures.
  std::vector<std::unique_ptr<StepBody>> subgraphs;
  std::vector<std::vector<Slot>> captures;
  // Index of the provider whose stream gets the work; -1: the work is done on return.
  int32_t stream = -1;
  // Providers whose streams the step's stream (the host, if it has none) waits for before the step.
  std::vector<int32_t> waits;
  // Whether the host waits for the step's stream after the step: the step reads memory whose next
  // user does not know the stream.
  bool drains = false;
};

// An output of a step that may take the memory of an input; both by their index in the node.
struct InPlace {
  uint32_t output = 0, input = 0;
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
  // Initializers, by slot, including graph inputs with a default value.
  std::vector<std::pair<Slot, Value>> constants;
  std::vector<bool> is_constant;  // by slot
  // The entries of `constants` that a feed may replace.
  std::vector<std::pair<Slot, Value>> default_inputs;
  // The memories of intermediate values, outputs and scratch.
  std::vector<Location> locations;
  std::shared_ptr<Allocator> work_memory;  // of slabs and scratch on the CPU
  std::vector<uint8_t> location_of;        // by slot
  std::vector<int32_t> stream_of;          // by slot: provider whose stream makes the value, or -1
  std::span<ExecutionProvider* const> providers;
  const DataTransfers* transfers = nullptr;
  size_t most_memory_plans = 0;    // see PlanParts
  bool owns_memory = false;        // see PlanParts
  bool may_shrink_memory = false;  // see PlanParts
  // By slot: the step that makes the value, or the value that it is a view of; -1: none does.
  std::vector<int32_t> made_at;
  // Last step that reads the slot; -1 if none does.
  std::vector<int32_t> last_use;
  // The same, but views of the slot count as the slot.
  std::vector<int32_t> last_memory_use;
  // Made by FindInPlace: where steps may work in place, each step's preferred ways first; and,
  // parallel to `slots`, which inputs are not read after the step.
  std::vector<InPlace> in_place;
  std::vector<bool> is_last_read;
  // The graph's value that each slot holds, either itself or as a copy in another memory.
  std::vector<ValueId> value_of;
  // Nodes that are not in the graph: copies between memories.
  std::vector<std::unique_ptr<Node>> own_nodes;

  bool IsConstant(Slot slot) const { return is_constant[static_cast<size_t>(slot)]; }
  // Whether the slot is an input with a default value, which a feed may replace.
  bool IsDefaultInput(Slot slot) const;
  const Location& LocationOf(Slot slot) const {
    return locations[location_of[static_cast<size_t>(slot)]];
  }
  // The slot of a value by its name. Error: kInvalidArgument naming it.
  Result<Slot> FindSlot(std::string_view name) const;

  std::span<const Slot> InputsOf(const Step& step) const {
    return {slots.data() + step.inputs_begin, slots.data() + step.inputs_end};
  }
  std::span<const Slot> OutputsOf(const Step& step) const {
    return {slots.data() + step.outputs_begin, slots.data() + step.outputs_end};
  }
  std::span<const Slot> ReleasesOf(const Step& step) const {
    return {slots.data() + step.releases_begin, slots.data() + step.releases_end};
  }
  std::span<const InPlace> InPlaceOf(const Step& step) const {
    return {in_place.data() + step.in_place_begin, in_place.data() + step.in_place_end};
  }
  bool IsLastRead(const Step& step, size_t input) const {
    return is_last_read[step.inputs_begin + input];
  }
};

}  // namespace tenon
