// Runs the steps of a region over a frame.
#pragma once

#include "base/function_ref.h"
#include "runtime/frame.h"
#include "runtime/memory_plan.h"
#include "runtime/plan.h"
#include "runtime/region.h"
#include "runtime/run_scope.h"

namespace tenon {

// Serves one run of one region. Errors of a step read "Non-zero status code returned while running
// <op> node. Name:'<node>' Status Message: <text> (<where the node is and what it read>)", once: a
// failure in a subgraph names the node in there.
class StepRunner {
 public:
  // `scope.streams` is set.
  StepRunner(const Plan& plan, const Region& region, const RunScope& scope, Frame& frame)
      : plan_(plan),
        region_(region),
        scope_(scope),
        frame_(frame),
        is_watched_(scope.profiler != nullptr || scope.meter != nullptr) {}

  // By the memory plan that the frame is bound to.
  Status RunPlanned();
  // Without one: each step finds shapes and memory, and `record` says what the shapes of the feeds
  // determined.
  Status RunRecorded(RunRecord& record);

 private:
  // What the run ends with: the kernel's failure, with the node that is recorded in the scope.
  Status Failed(const Step& step, Status status);
  Status RunStep(const Step& step);
  Status RunKernel(const Step& step, Stream* stream);
  // RunStep for a profiler or meter.
  Status RunWatched(const Step& step);
  // Runs the step between the dumps of what it reads and makes.
  Status RunDumped(const Step& step, FunctionRef<Status()> run);
  // Waits until what the step reads, and what its stream was given, is done.
  Status FlushStream(const Step& step);
  // A step whose outputs are not bound: finds their shapes and memory first.
  Status RunUnboundStep(const Step& step);
  Result<Stream*> WaitForInputs(const Step& step);
  Status AllocateOutputs(const Step& step, bool* is_done);
  void RecordStep(const Step& step, RunRecord& record);
  // Tells the profiler and the dump of the region's given steps that come before step `index`.
  Status TraceGiven(uint32_t index);

  const Plan& plan_;
  const Region& region_;
  const RunScope& scope_;
  Frame& frame_;
  const bool is_watched_;
  // Whether the last kernel failed because a node of its subgraph did.
  bool failed_inside_ = false;
  size_t traced_given_ = 0;  // of Region::given
};

}  // namespace tenon
