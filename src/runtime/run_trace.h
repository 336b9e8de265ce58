// What a profiler learns of one run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/logging.h"
#include "runtime/profiler.h"
#include "runtime/run_attempt.h"
#include "runtime/run_options.h"

namespace tenon {

// From its construction to End, the events of this thread are those of a run, and the run is one.
class RunTrace {
 public:
  // Records nothing if `profiler` is null. Its file is closed in the end if it `ends_with_run`.
  RunTrace(std::shared_ptr<Profiler> profiler, bool ends_with_run, uint64_t run_id,
           const RunAttempt& attempt);
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;

  Profiler* profiler() const { return profiler_.get(); }
  // Says how the run ended. Of a try that may be followed by another it only tells `attempt` when
  // it began. A file that cannot be written is logged.
  void End(const Status& status, const RunOptions& options, RunAttempt& attempt,
           const Logger& logger);

 private:
  void Describe(const Status& status, const RunOptions& options, RunAttempt& attempt);

  const std::shared_ptr<Profiler> profiler_;
  const bool ends_with_run_;
  const uint64_t run_id_;
  std::optional<TraceScope> context_;
  std::optional<TraceSpan> span_;
};

}  // namespace tenon
