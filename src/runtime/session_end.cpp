// How a session ends: provider-lifecycle, steps T1 to T9.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

#include "base/exception_barrier.h"
#include "base/thread_pool.h"
#include "base/watchdog.h"
#include "runtime/config.h"
#include "runtime/profiler.h"
#include "runtime/run_pipeline.h"
#include "runtime/session.h"

namespace tenon {
namespace {

const char* ReasonName(SessionEndReason reason) {
  switch (reason) {
    case SessionEndReason::kReleased:
      return "RELEASED";
    case SessionEndReason::kInitFailed:
      return "INIT_FAILED";
    case SessionEndReason::kReplacedByFallback:
      return "REPLACED_BY_FALLBACK";
    case SessionEndReason::kAgentClosed:
      return "AGENT_CLOSED";
  }
  return "RELEASED";
}

}  // namespace

Session::~Session() {
  if (!has_ended_) End(end_reason_);
}

// What there is no memory for, such as an event of the trace, is left out.
void Session::End(SessionEndReason reason, bool trace_goes_on) {
  end_reason_ = reason;
  if (pipeline_ != nullptr) pipeline_->Close();
  {
    const TraceScope context(profiler_.get(), "teardown");
    const TraceSpan span(profiler_.get(), TraceCategory::kSession, "session_teardown", true);
    TellEnd();
    ReleaseState(trace_goes_on);
    const void* const whose = trace_goes_on ? this : nullptr;
    if (profiler_) profiler_->EndProviders(whose, true);
    while (!parts_.providers.empty()) {
      TraceSpan release(profiler_.get(), TraceCategory::kSession, "provider_release");
      release.AddArg("provider", parts_.providers.back()->name());
      parts_.providers.pop_back();
    }
    if (profiler_) profiler_->EndProviders(whose);
    own_threads_.reset();
    if (!trace_goes_on) model_ = Model();
  }
  if (profiler_ != nullptr && !trace_goes_on) {
    (void)HasMemoryFor([this] {
      const Result<std::string> path = profiler_->End();
      if (!path) TENON_LOG(logger_, kError, "profiling: {}", path.error().message());
    });
  }
  has_ended_ = true;
}

void Session::TellEnd() {
  using std::chrono::duration_cast, std::chrono::milliseconds;
  constexpr milliseconds kPatience = std::chrono::seconds(10);
  if (providers_.empty()) return;
  std::atomic<ExecutionProvider*> told = providers_.front();
  const auto begin = std::chrono::steady_clock::now();
  const auto bark = [&] {
    const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
    TENON_LOG(logger_, kWarning, "{} still keeps the session from ending, after {:.1f} s",
              told.load()->name(), time.count());
  };
  std::optional<Watchdog> watchdog;
  (void)HasMemoryFor([&] {
    const auto patience =
        ConfigMicroseconds(options_.config, "tenon.session_end_patience_us", kPatience);
    watchdog.emplace(
        std::max(duration_cast<milliseconds>(patience.value_or(kPatience)), milliseconds(1)), bark);
  });
  for (ExecutionProvider* provider : providers_) {
    told = provider;
    (void)HasMemoryFor([&] { TellEnd(*provider); });
  }
}

// A provider's failure is logged; the other providers are still told.
void Session::TellEnd(ExecutionProvider& provider) {
  TraceSpan span(profiler_.get(), TraceCategory::kSession, "ep_session_end");
  const SessionEndInfo info{end_reason_, id_, profiler_ != nullptr && !profiler_->is_over(),
                            pipeline_ == nullptr ? 0 : pipeline_->completed_runs()};
  const Status status = CatchExceptions([&] { return provider.OnSessionEnd(info); });
  span.AddArg("provider", provider.name());
  span.AddArg("reason", ReasonName(end_reason_));
  span.AddArg("status", status.ok() ? "ok" : std::to_string(static_cast<int>(status.code())));
  if (status.ok()) return;
  TENON_LOG(logger_, kError, "{} failed at the session's end (code {}): {}", provider.name(),
            static_cast<int>(status.code()), status.message());
}

// Frees kernels, packed weights, pooled frames and streams, constants, then the arenas.
void Session::ReleaseState(bool keeps_graph) {
  const TraceSpan span(profiler_.get(), TraceCategory::kSession, "session_state_release");
  if (pipeline_ != nullptr) pipeline_->Release();
  // If another session continues this one, its description may still be read.
  if (!keeps_graph) model_.graph.reset();
  memories_.clear();
}

}  // namespace tenon
