// What a run of a region with certain feed shapes looks like: the shape and place of every value
// that the feed shapes determine.
//
// The first run with new feed shapes is recorded: each step finds its shapes and allocates its
// outputs. From the record follows which shapes, and which elements, depend on the feed shapes
// alone. Later runs with the same shapes skip the steps whose elements are so determined, find the
// other determined values at fixed offsets of one slab, and treat only the rest as the first run
// did.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/plan.h"
#include "runtime/region.h"
#include "tensor/value.h"

namespace tenon {

// What the recorded run saw of one slot.
struct SlotRecord {
  DataType type = DataType::kUndefined;
  Shape shape;
  bool is_tensor = false;
  // The shape, the elements: a function of the feed shapes and the constants.
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
    kDynamic,   // found by its step in the run
    kSlab,      // at `offset` of its location's slab
    kFeed,      // in the memory of `root`: fed, or left by an earlier region
    kOutput,    // in the memory of the fetched value whose slot is `root`
    kConstant,  // a constant of the plan, or fixed elements
  };
  struct Binding {
    Place place = Place::kDynamic;
    DataType type = DataType::kUndefined;
    Shape shape;
    size_t offset = 0;
    Slot root = kNoSlot;
  };

  std::vector<Binding> bindings;  // by slot
  // Steps to run, ascending.
  std::vector<uint32_t> steps;
  // By step: outputs are bound before the run, so the kernel is called at once.
  std::vector<bool> is_bound;
  std::vector<std::pair<Slot, Value>> fixed_values;
  // Slots in the memory of feeds and outputs, which move from run to run.
  std::vector<Slot> moving;
  // Outputs that their steps may write over an input, which the plan keeps free for them.
  std::vector<std::pair<Slot, Slot>> overwritten;
  std::vector<size_t> slab_bytes;  // by location
};

// The plan for later runs of `region` with the shapes of the recorded one.
std::shared_ptr<const MemoryPlan> PlanMemory(const Plan& plan, const Region& region,
                                             const RunRecord& record);

}  // namespace tenon
