// The values of a run of a plan, and the progress of the run.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "base/block_pool.h"
#include "runtime/concrete_shapes.h"
#include "runtime/memory_plan.h"
#include "runtime/plan.h"
#include "runtime/stream_set.h"

namespace tenon {

class MemoryPlanEntry;
struct Region;

// A frame serves any number of runs of the whole plan, or one run in parts. Frames are pooled
// (FramePool); concurrent runs use different ones. Used by one thread at a time.
class Frame {
 public:
  explicit Frame(const Plan& plan);
  Frame(const Frame&) = delete;
  Frame& operator=(const Frame&) = delete;

  // --- for callers that run the plan ---

  // The step at which the next part begins.
  uint32_t position() const { return position_; }
  // The value that the parts so far left in a slot for later ones; empty if they left none.
  const Value& ValueOf(Slot slot) const { return values_[static_cast<size_t>(slot)]; }
  // From now on, a run leaves its values and their memory as they are until the next run, because a
  // device will work on that memory again. Such a run fetches nothing; Executor::FetchAgain does.
  void KeepValues() { keeps_values_ = true; }
  // The streams of the run, if this is the outermost plan.
  StreamSet& streams() { return streams_; }

  // --- for the executor ---

  // Called before and after a part of the plan runs. At its end, values that later parts read stay
  // and own their memory, and all others are dropped. No part may follow one that failed.
  void BeginPart(const Region& region);
  void EndPart(const Region& region, bool is_ok);
  bool has_failed() const { return has_failed_; }

  // Prepares for runs with the plan `memory` (null: for a run without one): slabs, fixed values,
  // views into the slabs. Does nothing if the frame is bound to that plan already. Error: out of
  // memory.
  Status Bind(std::shared_ptr<const MemoryPlan> memory);
  // Points the slots in the memory of feeds and outputs to where that memory is now; those of an
  // output without memory are left.
  void BindMoving();
  // The same for those in the memory of one feed or output.
  void BindMovingWith(Slot root);
  // Drops a feed and the values in its memory.
  void DropFeed(Slot root);
  // Drops the feeds, outputs and dynamic values of the run.
  void Clear();
  // Undoes all that a user of the frame did to it.
  void Reset();

  Value& value(Slot slot) { return values_[static_cast<size_t>(slot)]; }
  std::span<const Value* const> InputsOf(const Step& step) const {
    return {inputs_.data() + step.inputs_begin, step.inputs_end - step.inputs_begin};
  }
  std::span<Value* const> OutputsOf(const Step& step) const {
    return {outputs_.data() + step.outputs_begin, step.outputs_end - step.outputs_begin};
  }
  const MemoryPlan* memory() const { return memory_.get(); }
  bool keeps_values() const { return keeps_values_; }
  // What the last run learned about its shapes; null if there was none.
  std::shared_ptr<MemoryPlanEntry>& last_plan() { return last_plan_; }
  // The number of this run of the plan, from 1 on, for a dump of its nodes. All parts of a run have
  // the same number.
  uint64_t execution() const { return execution_; }
  void set_execution(uint64_t execution) { execution_ = execution; }
  ConcreteShapeContext& shapes() { return shapes_; }

  // At least `bytes` bytes of scratch memory for the current kernel; null if there is no memory.
  void* Scratch(size_t bytes);
  // A tensor for a value that enters or leaves through a copy. It lies at the same place in every
  // run while type and shape stay the same. Error: out of memory.
  Result<Tensor> Buffer(Slot slot, DataType type, const Shape& shape);

  // Where outputs of the coming run lie if their steps allocate them: in the caller's tensor if it
  // fits, or, for an output that is copied elsewhere, in the slot's buffer.
  void ForgetOutputs() { offered_.clear(); }
  void OfferOutput(Slot slot, Tensor tensor) { offered_.emplace_back(slot, std::move(tensor)); }
  // The tensor that was offered for an output; null if none was.
  const Tensor* OfferedOutput(Slot slot) const;
  void OfferBuffer(Slot slot) { offered_.emplace_back(slot, std::nullopt); }
  // Memory for an output that a step allocates. Error: out of memory.
  Result<Tensor> AllocateOutput(Slot slot, DataType type, const Shape& shape,
                                const std::shared_ptr<Allocator>& memory);

 private:
  friend class FrameUse;

  Status Enlarge(Tensor& memory, size_t bytes, const std::shared_ptr<Allocator>& place) const;
  void Unbind();
  // Whether the values in the slabs are bound to where these are now.
  bool AreSlabsInPlace() const;
  // Gives the slabs and the scratch memory back to an arena that other sessions use, too.
  void ReturnWorkMemory();
  void Settle(const Region& region);
  // Points a slot in the memory of a feed or output to where that memory is.
  void PointToRoot(Slot slot);
  // A view of the place in the slab that the plan gives to `slot`.
  Tensor InSlab(size_t slot, std::shared_ptr<void> owner);
  void Keep(size_t slot, PooledVector<bool>& is_slab_held);

  const Plan& plan_;
  std::vector<Value> values_;  // by slot
  // Parallel to Plan::slots: pointers to each input and output; null where left out.
  std::vector<const Value*> inputs_;
  std::vector<Value*> outputs_;
  std::shared_ptr<const MemoryPlan> memory_;
  std::vector<Tensor> slabs_;             // by location
  bool has_new_slab_ = false;             // that no run but the last has used
  std::vector<const void*> slab_places_;  // where the values of `memory_` are bound, by location
  std::vector<std::pair<Slot, Tensor>> buffers_;
  std::vector<std::pair<Slot, std::optional<Tensor>>> offered_;  // absent: the slot's buffer
  Tensor scratch_;
  size_t most_scratch_ = 0;  // bytes that runs so far needed
  std::shared_ptr<MemoryPlanEntry> last_plan_;
  uint32_t position_ = 0;
  bool is_in_parts_ = false;
  bool has_failed_ = false;
  std::atomic<bool> is_running_ = false;
  bool keeps_values_ = false;
  uint64_t execution_ = 0;
  StreamSet streams_;
  ConcreteShapeContext shapes_;
};

// Tells, while it lives, whether the caller is the only user of a frame.
class FrameUse {
 public:
  explicit FrameUse(Frame& frame) : frame_(frame), is_alone_(!frame.is_running_.exchange(true)) {}
  ~FrameUse() {
    if (is_alone_) frame_.is_running_ = false;
  }
  FrameUse(const FrameUse&) = delete;
  FrameUse& operator=(const FrameUse&) = delete;
  bool is_alone() const { return is_alone_; }

 private:
  Frame& frame_;
  const bool is_alone_;
};

}  // namespace tenon
