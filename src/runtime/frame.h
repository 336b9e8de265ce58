// The values of one run of one plan. Frames are pooled: a run takes one, and concurrent runs take
// different ones.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/block_pool.h"
#include "runtime/concrete_shapes.h"
#include "runtime/memory_plan.h"
#include "runtime/plan.h"
#include "runtime/stream_set.h"

namespace tenon {

// Used by one thread at a time.
class Frame {
 public:
  explicit Frame(const Plan& plan);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // Prepares for runs by `memory` (null: a recorded run): slabs, fixed values, views into the
  // slabs. Does nothing if the frame is bound to it already. Error: out of memory.
  Status Bind(std::shared_ptr<const MemoryPlan> memory);
  // Points the slots that lie in feeds' and outputs' memory to where it is now.
  void BindMoving();
  // Ends a region of which others follow: keeps what they read, which holds on to its memory from
  // now on, and drops the rest.
  void Settle(const Region& region);
  // Drops what the run leaves behind: feeds, outputs and dynamic values.
  void Clear();

  Value& value(Slot slot) { return values_[static_cast<size_t>(slot)]; }
  std::span<const Value* const> InputsOf(const Step& step) const {
    return {inputs_.data() + step.inputs_begin, step.inputs_end - step.inputs_begin};
  }
  std::span<Value* const> OutputsOf(const Step& step) const {
    return {outputs_.data() + step.outputs_begin, step.outputs_end - step.outputs_begin};
  }
  const MemoryPlan* memory() const { return memory_.get(); }
  // Whether the memory of a run stays as it is afterwards, for a device that works on it again.
  bool keeps_values() const { return keeps_values_; }
  void set_keeps_values(bool keeps) { keeps_values_ = keeps; }
  // Which run of the plan this is, from 1 on, for a dump of its nodes; the parts of a run share it.
  uint64_t execution() const { return execution_; }
  void set_execution(uint64_t execution) { execution_ = execution; }
  ConcreteShapeContext& shapes() { return shapes_; }

  // The streams of the run, if this is the outermost plan.
  StreamSet& streams() { return streams_; }

  // At least `bytes` bytes for the kernel that runs; null if there is no memory.
  void* Scratch(size_t bytes);
  // A tensor in the slot's memory that keeps its place from run to run while type and shape stay:
  // for a value that enters or leaves through a copy. Error: out of memory.
  Result<Tensor> Buffer(Slot slot, DataType type, const Shape& shape);

  // Where outputs of the coming run shall lie if their steps allocate them: in a tensor of the
  // caller's if it fits, or, for those that leave through a copy, in the slot's buffer.
  void ForgetOutputs() { offered_.clear(); }
  void OfferOutput(Slot slot, Tensor tensor) { offered_.emplace_back(slot, std::move(tensor)); }
  void OfferBuffer(Slot slot) { offered_.emplace_back(slot, std::nullopt); }
  // Memory for such an output. Error: out of memory.
  Result<Tensor> AllocateOutput(Slot slot, DataType type, const Shape& shape,
                                const std::shared_ptr<Allocator>& memory);

 private:
  void Unbind();
  // The planned place of `slot` in its slab.
  Tensor InSlab(size_t slot, std::shared_ptr<void> owner);
  void Keep(size_t slot, PooledVector<bool>& is_slab_held);

  const Plan& plan_;
  std::vector<Value> values_;  // by slot
  // Parallel to Plan::slots: where each input and output is; null where left out.
  std::vector<const Value*> inputs_;
  std::vector<Value*> outputs_;
  std::shared_ptr<const MemoryPlan> memory_;
  std::vector<Tensor> slabs_;  // by location
  std::vector<std::pair<Slot, Tensor>> buffers_;
  std::vector<std::pair<Slot, std::optional<Tensor>>> offered_;  // absent: the slot's buffer
  Tensor scratch_;
  bool keeps_values_ = false;
  uint64_t execution_ = 0;
  StreamSet streams_;
  ConcreteShapeContext shapes_;
};

}  // namespace tenon
