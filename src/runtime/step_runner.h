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
// <op> node. Name:'<node>' Status Message: <text> (<where the node is and what it read>)". This
// text is added once: for a failure in a subgraph it names the node in the subgraph.
class StepRunner {
 public:
  // `scope.streams` must be set.
  // given  as in RunArguments
  StepRunner(const Plan& plan, const Region& region, const RunScope& scope, Frame& frame,
             std::span<Value> given)
      : plan_(plan),
        region_(region),
        scope_(scope),
        frame_(frame),
        given_(given),
        is_watched_(scope.profiler != nullptr || scope.meter != nullptr || scope.nvtx != nullptr) {}

  // Runs with the memory plan that the frame is bound to.
  Status RunPlanned();
  // Runs without a plan: each step finds its shapes and memory.
  Status RunUnplanned();
  // Finds out what the feed shapes determine: runs the steps whose elements they determine, and
  // asks the kernels of the others for shapes alone. Leaves no values in the frame but those that
  // were there. Returns whether all shapes are right; if not, a run without a plan reports what is
  // wrong. Error: that of a step that ran.
  Result<bool> Trace(RunRecord& record);

 private:
  // The error that ends the run. The failed node is also recorded in the scope.
  Status Failed(const Step& step, Status status);
  Status RunStep(const Step& step);
  Status RunKernel(const Step& step, Stream* stream);
  // That inputs which the kernel needs side by side lie so.
  Status CheckContiguous(const Step& step) const;
  // RunStep, reported to a profiler or a meter.
  Status RunWatched(const Step& step);
  // Tells the meter where the outputs of the step lie, if it wants to know.
  void NotePlacements(const Step& step) const;
  // Runs the step and dumps what it reads before, and what it makes after.
  Status RunDumped(const Step& step, FunctionRef<Status()> run);
  // Waits until the step's inputs and all work that its stream was given are done.
  Status FlushStream(const Step& step);
  // Runs a step whose outputs are not bound; finds their shapes and memory first.
  Status RunUnboundStep(const Step& step);
  Result<Stream*> WaitForInputs(const Step& step);
  Status AllocateOutputs(const Step& step, bool* is_done);
  Result<bool> TraceSteps(RunRecord& record);
  Result<bool> TraceStep(const Step& step, RunRecord& record);
  // Records the outputs of a step that ran.
  void RecordValues(const Step& step, RunRecord& record) const;
  // Records the shapes that the kernel finds for the outputs; the frame gets tensors without
  // memory. Returns false if they are wrong.
  bool RecordShapes(const Step& step, RunRecord& record);
  // Between steps of a planned run: drops given feeds that were last read before step `index`, and
  // gives memory to the outputs that are first written in it.
  Status MoveTo(uint32_t index);
  // Tells the client that the steps of the main graph before step `index` are done.
  Status ReportProgress(uint32_t index) const;
  // Drops a feed that the caller gave away and that no later step reads. The caller's stays if
  // another value of the frame uses its memory.
  void DropGiven(Slot slot);
  // Reports the region's given steps before step `index` to the profiler and the dump.
  Status TraceGiven(uint32_t index);

  const Plan& plan_;
  const Region& region_;
  const RunScope& scope_;
  Frame& frame_;
  const std::span<Value> given_;
  const bool is_watched_;
  // Whether the error of the last kernel stays as it is: a node of its subgraph failed, or its
  // inputs did not lie side by side.
  bool is_complete_error_ = false;
  size_t traced_given_ = 0;  // index in Region::given
  size_t first_uses_ = 0;    // indices in the memory plan's lists
  size_t last_uses_ = 0;
};

}  // namespace tenon
