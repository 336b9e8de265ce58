// Runs a plan. One executor serves a whole graph, a range of its steps and the body of a
// control-flow node alike.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/logging.h"
#include "base/mutex.h"
#include "runtime/frame.h"
#include "runtime/memory_plan.h"
#include "runtime/plan.h"

namespace tenon {

// What all steps of one run share, subgraphs included.
struct RunScope {
  ThreadPool* threads = nullptr;
  // The run ends with an error soon after this becomes true; may be null.
  const std::atomic<bool>* terminate = nullptr;
  std::optional<std::chrono::steady_clock::time_point> deadline;
  // Depth of control flow around this plan.
  int depth = 0;
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
  // tensor is written in place and must have the output's type and shape.
  // Errors: what a step reports, as "Non-zero status code returned while running <op> node.
  // Name:'<node>' Status Message: <text>"; termination; out of memory. The executor stays usable.
  Status Run(const RunScope& scope, std::span<const Value> feeds, std::span<Value> fetches);

  // Frees pooled frames and cached blocks of memory.
  void Trim();

 private:
  class StepContext;
  class Runner;
  struct KnownShapes;

  std::unique_ptr<Frame> TakeFrame();
  void ReturnFrame(std::unique_ptr<Frame> frame);
  std::shared_ptr<const MemoryPlan> FindMemoryPlan(std::span<const Value> feeds);
  void KeepMemoryPlan(std::span<const Value> feeds, std::shared_ptr<const MemoryPlan> memory);

  Status RunInFrame(const RunScope& scope, Frame& frame, std::span<const Value> feeds,
                    std::span<Value> fetches);
  Status SetFeeds(Frame& frame, std::span<const Value> feeds);
  Status PrepareOutputs(Frame& frame, std::span<Value> fetches);
  Status TakeOutputs(const RunScope& scope, Frame& frame, std::span<Value> fetches);
  Status RunRecorded(const RunScope& scope, Frame& frame, RunRecord& record);
  Status RunPlanned(const RunScope& scope, Frame& frame);
  Status RunStep(const RunScope& scope, Frame& frame, const Step& step);
  // A step whose outputs are not bound: finds their shapes and memory first.
  Status RunUnboundStep(const RunScope& scope, Frame& frame, const Step& step);
  Status AllocateOutputs(Frame& frame, const Step& step, bool* is_done);
  bool TakeOverInput(Frame& frame, const Step& step,
                     const ConcreteShapeContext::OutputShape& output);
  static void RecordShape(const Value& value, SlotRecord& slot);
  void RecordStep(Frame& frame, const Step& step, RunRecord& record);

  const Plan plan_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Frame>> idle_frames_;
  std::vector<KnownShapes> known_shapes_;  // most recent first
};

}  // namespace tenon
