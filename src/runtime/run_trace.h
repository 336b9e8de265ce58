// Records one run in a profiler.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "base/logging.h"
#include "runtime/profiler.h"
#include "runtime/run_attempt.h"
#include "runtime/run_options.h"

namespace tenon {

// Records the events of this thread, and the run itself, from construction to End.
class RunTrace {
 public:
  // Records nothing if `profiler` is null. Closes the profiler's file at the end if
  // `ends_with_run`.
  RunTrace(std::shared_ptr<Profiler> profiler, bool ends_with_run, uint64_t run_id,
           const RunAttempt& attempt);
  RunTrace(const RunTrace&) = delete;
  RunTrace& operator=(const RunTrace&) = delete;

  Profiler* profiler() const { return profiler_.get(); }
  // Records how the run ended. If another attempt may follow, only notes in `attempt` when this one
  // began. A file that cannot be written is logged.
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
