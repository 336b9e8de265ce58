#include "runtime/run_trace.h"

#include <string>
#include <utility>

namespace tenon {

RunTrace::RunTrace(std::shared_ptr<Profiler> profiler, bool ends_with_run, uint64_t run_id,
                   const RunAttempt& attempt)
    : profiler_(std::move(profiler)), ends_with_run_(ends_with_run), run_id_(run_id) {
  context_.emplace(profiler_.get(), "run", run_id_, attempt.meter);
  if (profiler_ == nullptr) return;
  span_.emplace(profiler_.get(), TraceCategory::kSession, "model_run");
  if (attempt.trace_start) span_->set_start(*attempt.trace_start);
}

void RunTrace::Describe(const Status& status, const RunOptions& options, RunAttempt& attempt) {
  if (!options.tag.empty()) span_->AddArg("run_tag", options.tag);
  span_->AddArg("run_id", std::to_string(run_id_));
  span_->AddArg("status", status.ok() ? "ok" : std::to_string(static_cast<int>(status.code())));
  if (attempt.number > 1) span_->AddArg("attempts", std::to_string(attempt.number));
  const bool may_follow = attempt.may_be_repeated && attempt.failed.provider >= 0 &&
                          status.code() == StatusCode::kEpFail;
  if (!may_follow) return;
  attempt.trace_start = span_->start();
  span_->Drop();
}

void RunTrace::End(const Status& status, const RunOptions& options, RunAttempt& attempt,
                   const Logger& logger) {
  if (span_) Describe(status, options, attempt);
  span_.reset();
  context_.reset();
  if (profiler_ == nullptr) return;
  profiler_->EndRun();
  if (!ends_with_run_) return;
  const Result<std::string> path = profiler_->End();
  if (!path) TENON_LOG(logger, kError, "profiling: {}", path.error().message());
}

}  // namespace tenon
