// Records one run of one step in a profiler.
#pragma once

#include <optional>

#include "base/loop_stats.h"
#include "runtime/frame.h"
#include "runtime/plan.h"
#include "runtime/profiler.h"
#include "runtime/run_scope.h"

namespace tenon {

// While it lives, the memory events of this thread name the step's node. Does nothing without a
// profiler.
class NodeInTrace {
 public:
  NodeInTrace(const RunScope& scope, const Plan& plan, const Step& step);
  ~NodeInTrace();
  NodeInTrace(const NodeInTrace&) = delete;
  NodeInTrace& operator=(const NodeInTrace&) = delete;
  const TracedNode* node() const { return node_; }

 private:
  const TracedNode* const node_;
  TraceContext* const context_;
  const std::string* const outer_;
};

// Made before the step waits for its inputs. Records the step when EndKernel is called; a step that
// failed is not recorded.
class StepTrace {
 public:
  // `scope.profiler` must be set.
  StepTrace(const RunScope& scope, const Plan& plan, const Step& step);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  void StartKernel(const Frame& frame);
  void EndKernel(const Frame& frame);
  // Called instead of EndKernel if the outputs were given and no kernel ran.
  void EndCached(const Frame& frame);

 private:
  void TellProvidersEnd();
  // Of the allocator of the step's outputs; zeros if it has none.
  AllocatorStats MemoryStats() const;
  void Measure(const Value* value, uint64_t* bytes);

  Profiler& profiler_;
  const Plan& plan_;
  const Step& step_;
  const NodeInTrace node_;
  NodeTrace trace_;
  LoopStats loops_;
  std::optional<LoopStatsScope> collecting_;
  bool told_providers_ = false;
  bool is_done_ = false;
};

}  // namespace tenon
