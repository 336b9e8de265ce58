// One try of a run that may be tried again on another session.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/failed_node.h"

namespace tenon {

class RunMeter;

struct RunAttempt {
  uint32_t number = 1;
  // Whether another try may follow: then the trace gets no "model_run" for a failing provider.
  bool may_be_repeated = false;
  // Counts what the run does; may be null.
  RunMeter* meter = nullptr;
  // Set by the run: the node that failed, and when the first try began, if that was not traced.
  FailedNode failed;
  std::optional<int64_t> trace_start;
};

}  // namespace tenon
