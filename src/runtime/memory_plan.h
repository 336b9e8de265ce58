// The memory plan of a region for certain feed shapes: the shape and place of every value that the
// feed shapes determine.
//
// The first run with new feed shapes is recorded: each step finds its shapes and allocates its
// outputs. The record shows which shapes and which elements depend on the feed shapes alone. Later
// runs with the same shapes skip the steps whose elements are determined. Other determined values
// lie at fixed offsets of one slab. All remaining steps run as in the first run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "runtime/plan.h"
#include "runtime/region.h"
#include "tensor/value.h"

namespace tenon {

// What the recorded run found out about one slot.
struct SlotRecord {
  DataType type = DataType::kUndefined;
  Shape shape;
  bool is_tensor = false;
  // Whether the shape and the elements depend only on the feed shapes and the constants.
  bool shape_is_fixed = false;
  bool data_is_fixed = false;
  // The value, kept if its elements are fixed.
  Value value;
};

struct RunRecord {
  explicit RunRecord(size_t slots) : slots(slots) {}
  std::vector<SlotRecord> slots;
};

// Immutable; shared by the frames that are bound to it.
struct MemoryPlan {
  enum class Place : uint8_t {
    kDynamic,   // allocated by its step in the run
    kSlab,      // at `offset` of its location's slab
    kFeed,      // in the memory of `root`: fed, or left by an earlier region
    kOutput,    // at `offset` of the memory of the fetched value whose slot is `root`
    kConstant,  // a constant of the plan, or fixed elements
  };
  struct Binding {
    Place place = Place::kDynamic;
    DataType type = DataType::kUndefined;
    Shape shape;
    size_t offset = 0;  // also in an output's memory
    Slot root = kNoSlot;
  };

  std::vector<Binding> bindings;  // by slot
  // Steps to run, ascending.
  std::vector<uint32_t> steps;
  // By step: whether the outputs are bound before the run, so that the kernel is called at once.
  std::vector<bool> is_bound;
  // Values with fixed elements that the steps to run read, or that the region gives out.
  std::vector<std::pair<Slot, Value>> fixed_values;
  size_t fixed_bytes = 0;  // of their tensors
  // Slots in the memory of feeds and outputs, whose addresses change from run to run; those of one
  // root lie together.
  std::vector<Slot> moving;
  // (step, root), ascending: outputs that are first written in the step, and feeds that are last
  // read in it. Empty if a stream does some of the work, which may be done after its step.
  std::vector<std::pair<int32_t, Slot>> first_uses;
  std::vector<std::pair<int32_t, Slot>> last_uses;
  // (output, input): the step may write the output over the input, whose memory the plan keeps for
  // it.
  std::vector<std::pair<Slot, Slot>> overwritten;
  std::vector<size_t> slab_bytes;  // by location

  // The entries of `moving` in the memory of `root`.
  std::span<const Slot> MovingWith(Slot root) const;
};

// Makes the plan for later runs of `region` with the shapes of the recorded run.
std::shared_ptr<const MemoryPlan> PlanMemory(const Plan& plan, const Region& region,
                                             const RunRecord& record);

}  // namespace tenon
