// Runs a plan. The same executor serves a whole graph, a range of its steps, and the body of a
// control-flow node.
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

// The steps [begin, end) of a plan, with the slots of the values that go in and come out.
struct PlanPart {
  uint32_t begin = 0, end = 0;
  // These slots are empty before, or inputs with a default. A step whose outputs are all fed is
  // skipped.
  std::span<const Slot> feeds;
  // Values made in these steps, outputs of the graph made in earlier ones, and constants (of which
  // the caller gets a copy).
  std::span<const Slot> fetches;
};

// What one run of a plan is fed, and what it fetches.
struct RunArguments {
  // In the order of Plan::inputs, or of PlanPart::feeds. kNone takes the default of an input that
  // is also an initializer. In any memory that a data transfer reaches.
  std::span<const Value> feeds;
  // In the order of Plan::outputs, or of PlanPart::fetches. kNone is filled with a new value; a
  // tensor is written in place and must have the output's type and shape.
  std::span<Value> fetches;
  // The memory for fetches that are kNone, one per fetch. Null entries mean the CPU's memory, and
  // so does an empty list.
  std::span<const MemoryInfo* const> fetch_memory = {};
  // Absent: the whole plan.
  std::optional<PlanPart> part = {};
  // `feeds` again if the caller gives them away, else empty: the run drops each tensor after its
  // last reader, so that its memory is free for what comes later.
  std::span<Value> given = {};
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
  // the first begins at step 0, each other one where the one before ended. Values that later parts
  // read stay in the frame.
  // Errors: that of a step, as "Non-zero status code returned while running <op> node.
  // Name:'<node>' Status Message: <text>"; termination; out of memory. For a part also
  // kInvalidArgument for a range that does not follow the last one or is not in the plan, a feed
  // whose slot is set already, a value that a step needs and that was neither made nor fed, and a
  // fetch that was not made; kFail if the frame is in use or one of its parts failed. The executor
  // stays usable.
  Status Run(const RunScope& scope, Frame& frame, const RunArguments& run);

  // Copies the outputs of the last run of a frame that keeps its values.
  Status FetchAgain(const RunScope& scope, Frame& frame, const RunArguments& run);

  Status RunBody(const RunScope& scope, Frame& frame, std::span<Value> feeds,
                 std::span<Value> results) override;

  // Frees pooled frames, those of subgraphs too.
  void DropFrames();
  // Frees what DropFrames frees, and cached blocks of memory.
  void Trim();
  // Bytes on the host that the plan's arena holds: pooled frames, cached blocks, and outputs that
  // callers still hold.
  size_t PooledBytes() const { return plan_.locations.front().allocator->Stats().bytes_reserved; }

 private:
  Status RunPart(const RunScope& scope, Frame& frame, const RunArguments& run);
  Status CheckPart(const Frame& frame, const RunArguments& run) const;
  Result<std::shared_ptr<MemoryPlanCache>> FindRegion(const PlanPart& part);

  // Runs a region from setting the feeds to taking the outputs. Feed is const Value, or Value to
  // move from: then fetches lend their memory and become new values.
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
  // A tensor in `memory` for a value of the plan. Error: no allocator, or out of memory.
  Result<Tensor> AllocateIn(const MemoryInfo& memory, DataType type, const Shape& shape) const;
  std::string NameOf(Slot slot) const;

  const Plan plan_;
  FramePool frames_;
  // Number of dumped runs that began at the first step.
  std::atomic<uint64_t> executions_ = 0;
  MemoryPlanCache whole_;
  Mutex mutex_;
  std::vector<std::shared_ptr<MemoryPlanCache>> parts_;  // most recent first
};

}  // namespace tenon
