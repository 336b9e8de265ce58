// One attempt of a run that may be repeated on another session.
#pragma once

#include <cstdint>
#include <optional>

#include "runtime/failed_node.h"

namespace tenon {

class RunMeter;

struct RunAttempt {
  uint32_t number = 1;
  // Whether another attempt may follow. If so, a provider's failure adds no "model_run" to the
  // trace.
  bool may_be_repeated = false;
  // Counts what the run does; may be null.
  RunMeter* meter = nullptr;
  // Set by the run: whether it was refused because axes of one name have different sizes, the node
  // that failed, and when the first attempt began, if that was not traced.
  bool has_unequal_names = false;
  FailedNode failed;
  std::optional<int64_t> trace_start;
};

}  // namespace tenon
