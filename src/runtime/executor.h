// Runs a plan. One executor serves a whole graph, a range of its steps and the body of a
// control-flow node alike.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "runtime/frame.h"
#include "runtime/memory_plan_cache.h"
#include "runtime/plan.h"
#include "runtime/run_scope.h"

namespace tenon {

class Executor;

// One execution of a plan: the frame of its values and streams, and how far it came. Runs the whole
// plan any number of times, or once in parts. Used by one thread at a time. The executor outlives
// it.
class ExecutionState {
 public:
  explicit ExecutionState(Executor& executor);
  // Frees every value that it still holds.
  ~ExecutionState();
  ExecutionState(const ExecutionState&) = delete;
  ExecutionState& operator=(const ExecutionState&) = delete;

  // The step at which the next part begins.
  uint32_t position() const { return position_; }
  // What the parts that ran left in a slot for later ones; empty if they left nothing.
  const Value& ValueOf(Slot slot) const { return frame_->value(slot); }
  // See StreamSet.
  Status UseStream(Stream& given) { return frame_->streams().Use(given); }
  // From now on a run leaves its values and their memory as they are, until the next one; it
  // fetches nothing, which FetchAgain does.
  void KeepValues() { frame_->set_keeps_values(true); }
  // Tells the streams that a run is over, after waiting for them if `synchronize`.
  Status EndRun(bool synchronize) { return frame_->streams().EndRun(synchronize); }

 private:
  friend class Executor;

  Executor& executor_;
  std::unique_ptr<Frame> frame_;
  std::shared_ptr<MemoryPlanCache::Entry> planned_;  // of the last RunBody
  uint32_t position_ = 0;
  bool is_in_parts_ = false;
  bool has_failed_ = false;
  std::atomic<bool> is_running_ = false;
};

// Which steps to run next, what goes into them and what comes out.
struct PartialRun {
  uint32_t begin = 0, end = 0;
  // Values by slot. Fed slots must be empty, or inputs with a default. A step whose outputs are all
  // fed is skipped.
  std::span<const Slot> feed_slots;
  std::span<const Value> feeds;
  // Anything made in these steps, an output of the graph made in earlier ones, or a constant (of
  // which the caller gets a copy). As for Run, fetches[i] may be a tensor to write into.
  std::span<const Slot> fetch_slots;
  std::span<Value> fetches;
};

// Thread-safe.
class Executor {
 public:
  explicit Executor(Plan plan);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const { return plan_; }

  // Runs the whole plan. `feeds` follow Plan::inputs; kNone takes the default of an input that is
  // also an initializer. `fetches` has one value per output: kNone is filled with a new value, a
  // tensor is written in place and must have the output's type and shape. Feeds and fetches may lie
  // in any memory that a data transfer reaches.
  // Errors: what a step reports, as "Non-zero status code returned while running <op> node.
  // Name:'<node>' Status Message: <text>"; termination; out of memory. The executor stays usable.
  Status Run(const RunScope& scope, std::span<const Value> feeds, std::span<Value> fetches);
  // The same with the frame and the streams of `state`.
  Status Run(const RunScope& scope, ExecutionState& state, std::span<const Value> feeds,
             std::span<Value> fetches);

  // The outputs of the last run of a state that keeps its values, as copies.
  Status FetchAgain(const RunScope& scope, ExecutionState& state, std::span<Value> fetches);

  // Runs the whole plan as the body of a control-flow node, again and again with one state. `feeds`
  // are moved from. Each of `results` becomes a new value, and lends its old memory to it where
  // that fits and nobody else refers to it.
  Status RunBody(const RunScope& scope, ExecutionState& state, std::span<Value> feeds,
                 std::span<Value> results);

  // Runs a part of the plan. Parts of one state follow each other: each begins where the one before
  // ended, the first at 0. Values that later parts read stay in the state.
  // Errors: kInvalidArgument for a range that does not follow or is not in the plan, a slot that is
  // set already, a value that a step needs and nobody made, a fetch that was not made; kFail if the
  // state is in use or one of its parts failed; otherwise as Run.
  Status RunPart(const RunScope& scope, ExecutionState& state, const PartialRun& part);

  // Frees pooled frames, those of subgraphs too.
  void DropFrames();
  // The same, and cached blocks of memory.
  void Trim();
  // Bytes on the host that the plan's arena holds: pooled frames, cached blocks, and outputs that
  // callers keep.
  size_t PooledBytes() const { return plan_.locations.front().allocator->Stats().bytes_reserved; }

 private:
  friend class ExecutionState;

  std::unique_ptr<Frame> TakeFrame();
  void ReturnFrame(std::unique_ptr<Frame> frame);
  Result<std::shared_ptr<MemoryPlanCache>> FindRegion(const PartialRun& part);

  // Everything between the values set and the values taken.
  Status RunRegion(const RunScope& scope, MemoryPlanCache& plans, Frame& frame,
                   std::span<const Value> feeds, std::span<Value> fetches);
  Status RunWhole(const RunScope& scope, Frame& frame, std::span<const Value> feeds,
                  std::span<Value> fetches);
  Status RunPartLocked(const RunScope& scope, ExecutionState& state, const PartialRun& part);
  Status CheckPart(const ExecutionState& state, const PartialRun& part) const;

  // Feed is const Value, or Value to move from.
  template <class Feed>
  Status BindAndFeed(const RunScope& scope, const MemoryPlanCache& plans,
                     const MemoryPlanCache::Entry& entry, Frame& frame, std::span<Feed> feeds);
  // Steps and fetches. With `lends`, fetches lend their memory and become new values.
  Status RunSteps(const RunScope& scope, MemoryPlanCache& plans,
                  const std::shared_ptr<MemoryPlanCache::Entry>& entry, Frame& frame,
                  std::span<Value> fetches, bool lends);
  template <class Feed>
  Status SetFeeds(Frame& frame, const Region& region, std::span<Feed> feeds);
  Status CheckNeeded(const Region& region, Frame& frame) const;
  static const MemoryInfo& WantedMemory(const RunScope& scope, size_t i, const Value& fetch);
  void OfferOutputs(const RunScope& scope, const Region& region, Frame& frame,
                    std::span<const Value> fetches) const;
  Status PrepareOutputs(const RunScope& scope, const Region& region, Frame& frame,
                        std::span<Value> fetches);
  Status TakeOutputs(const RunScope& scope, const Region& region, Frame& frame,
                     std::span<Value> fetches);
  Status TakeOutput(const RunScope& scope, Frame& frame, Slot slot, const MemoryInfo& wanted,
                    bool may_share, Value& fetch);
  // A tensor for a value of the plan in `memory`. Error: no allocator, or out of memory.
  Result<Tensor> AllocateIn(const MemoryInfo& memory, DataType type, const Shape& shape) const;
  std::string NameOf(Slot slot) const;

  const Plan plan_;
  // Dumped runs that began at the first step.
  std::atomic<uint64_t> executions_ = 0;
  MemoryPlanCache whole_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_frames_;
  std::vector<std::shared_ptr<MemoryPlanCache>> parts_;  // most recent first
};

}  // namespace tenon
