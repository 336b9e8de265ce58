// The memory plan of a region for certain feed shapes: the shape and place of every value that the
// feed shapes determine.
//
// Before the first run with new feed shapes, their effect is traced: the kernels are asked for the
// shapes of their outputs, and steps run whose elements depend on the feed shapes alone. The run
// and later ones with the same shapes skip those steps. Other determined values lie at fixed
// offsets of one slab. All remaining steps find their shapes and allocate their outputs when they
// run.
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

// There is no memory for a value with more bytes, nor for such a slab.
constexpr size_t kMostPlannedBytes = SIZE_MAX / 2 - 4096;

// What is known about one slot before the run.
struct SlotRecord {
  // Records the type and shape of `known`, and whether its elements are fixed.
  void Set(const Value& known, bool has_fixed_data);

  DataType type = DataType::kUndefined;
  Shape shape;
  // Whether the shape and the elements depend only on the feed shapes and the constants. Only a
  // tensor has a shape.
  bool shape_is_fixed = false;
  bool data_is_fixed = false;
  // The value that a step made, if its elements are fixed.
  Value value;
};

struct RunRecord {
  explicit RunRecord(size_t slots) : slots(slots) {}
  SlotRecord& Of(Slot slot) { return slots[static_cast<size_t>(slot)]; }
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

// Makes the plan for runs of `region` with the shapes of the record, none of which has more than
// kMostPlannedBytes. Null if a slab had more.
std::shared_ptr<const MemoryPlan> PlanMemory(const Plan& plan, const Region& region,
                                             const RunRecord& record);

}  // namespace tenon
