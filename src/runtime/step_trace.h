// What a profiler learns of one run of one step.
#pragma once

#include "runtime/frame.h"
#include "runtime/plan.h"
#include "runtime/profiler.h"

namespace tenon {

// Made before the step waits for its inputs. Records the step when EndKernel was called; a step
// that failed leaves nothing. Meanwhile the memory events of this thread name the node.
class StepTrace {
 public:
  StepTrace(Profiler& profiler, const Plan& plan, const Step& step);
  ~StepTrace();
  StepTrace(const StepTrace&) = delete;
  StepTrace& operator=(const StepTrace&) = delete;

  void StartKernel(const Frame& frame);
  void EndKernel(const Frame& frame);

 private:
  void Measure(const Value* value, uint64_t* bytes);

  Profiler& profiler_;
  const Plan& plan_;
  const Step& step_;
  NodeTrace trace_;
  const std::string* outer_node_ = nullptr;
  bool told_providers_ = false;
  bool is_done_ = false;
};

}  // namespace tenon
