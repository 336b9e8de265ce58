// Runs a plan. One executor serves a whole graph, a range of its steps and the body of a
// control-flow node alike.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "runtime/frame_pool.h"
#include "runtime/memory_plan_cache.h"
#include "runtime/plan.h"
#include "runtime/run_scope.h"

namespace tenon {

// The steps [begin, end) of a plan, by the slots of what goes into them and what comes out.
struct PlanPart {
  uint32_t begin = 0, end = 0;
  // Must be empty, or inputs with a default. A step whose outputs are all fed is skipped.
  std::span<const Slot> feeds;
  // Anything made in these steps, an output of the graph made in earlier ones, or a constant (of
  // which the caller gets a copy).
  std::span<const Slot> fetches;
};

// What one run of a plan is given, and what it is to fetch.
struct RunArguments {
  // In the order of Plan::inputs, where kNone takes the default of an input that is also an
  // initializer; or of PlanPart::feeds. In any memory that a data transfer reaches.
  std::span<const Value> feeds;
  // In the order of Plan::outputs, or of PlanPart::fetches. kNone is filled with a new value; a
  // tensor is written in place and must have the output's type and shape.
  std::span<Value> fetches;
  // Where fetches that are kNone shall lie, one per fetch; null entries, and all if it is empty: in
  // the CPU's memory.
  std::span<const MemoryInfo* const> fetch_memory = {};
  // Absent: the whole plan.
  std::optional<PlanPart> part = {};
};

// Thread-safe.
class Executor final : public StepBody {
 public:
  explicit Executor(Plan plan);
  ~Executor() override;
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  const Plan& plan() const override { return plan_; }
  FramePool& frames() override { return frames_; }

  // Runs the plan, or a part of it, over a frame of frames(). Parts of one frame follow each other:
  // each begins where the one before ended, the first at 0. Values that later parts read stay in
  // the frame.
  // Errors: what a step reports, as "Non-zero status code returned while running <op> node.
  // Name:'<node>' Status Message: <text>"; termination; out of memory. Of a part also
  // kInvalidArgument for a range that does not follow or is not in the plan, a slot that is set
  // already, a value that a step needs and nobody made, a fetch that was not made; kFail if the
  // frame is in use or one of its parts failed. The executor stays usable.
  Status Run(const RunScope& scope, Frame& frame, const RunArguments& run);

  // The outputs of the last run of a frame that keeps its values, as copies.
  Status FetchAgain(const RunScope& scope, Frame& frame, const RunArguments& run);

  Status RunBody(const RunScope& scope, Frame& frame, std::span<Value> feeds,
                 std::span<Value> results) override;

  // Frees pooled frames, those of subgraphs too.
  void DropFrames();
  // The same, and cached blocks of memory.
  void Trim();
  // Bytes on the host that the plan's arena holds: pooled frames, cached blocks, and outputs that
  // callers keep.
  size_t PooledBytes() const { return plan_.locations.front().allocator->Stats().bytes_reserved; }

 private:
  Status RunPart(const RunScope& scope, Frame& frame, const RunArguments& run);
  Status CheckPart(const Frame& frame, const RunArguments& run) const;
  Result<std::shared_ptr<MemoryPlanCache>> FindRegion(const PlanPart& part);

  // Everything between the values set and the values taken. Feed is const Value, or Value to move
  // from: then fetches lend their memory and become new values.
  template <class Feed>
  Status RunRegion(const RunScope& outer, MemoryPlanCache& plans, Frame& frame,
                   std::span<Feed> feeds, const RunArguments& run);
  template <class Feed>
  Status SetFeeds(Frame& frame, const Region& region, std::span<Feed> feeds);
  Status CheckNeeded(const Region& region, const Frame& frame) const;
  void OfferOutputs(const RunArguments& run, const Region& region, Frame& frame) const;
  Status PrepareOutputs(const RunArguments& run, const Region& region, Frame& frame);
  Status TakeOutputs(const RunScope& scope, const RunArguments& run, const Region& region,
                     Frame& frame);
  Status TakeOutput(const RunScope& scope, Frame& frame, Slot slot, const MemoryInfo& wanted,
                    bool may_share, Value& fetch);
  // A tensor for a value of the plan in `memory`. Error: no allocator, or out of memory.
  Result<Tensor> AllocateIn(const MemoryInfo& memory, DataType type, const Shape& shape) const;
  std::string NameOf(Slot slot) const;

  const Plan plan_;
  FramePool frames_;
  // Dumped runs that began at the first step.
  std::atomic<uint64_t> executions_ = 0;
  MemoryPlanCache whole_;
  Mutex mutex_;
  std::vector<std::shared_ptr<MemoryPlanCache>> parts_;  // most recent first
};

}  // namespace tenon
