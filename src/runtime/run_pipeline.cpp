#include "runtime/run_pipeline.h"

#include <optional>
#include <utility>

#include "base/exception_barrier.h"
#include "base/logging.h"
#include "runtime/arena_shrinkage.h"
#include "runtime/config.h"
#include "runtime/node_dump.h"
#include "runtime/nvtx.h"
#include "runtime/profiler.h"
#include "runtime/provider.h"
#include "runtime/run_attempt.h"
#include "runtime/run_hooks.h"
#include "runtime/run_options.h"
#include "runtime/run_trace.h"

namespace tenon {
namespace {

// Keeps the first failure.
void Note(Status& first, Status status) {
  if (first.ok()) first = std::move(status);
}

// As in ONNX Runtime: the session's id, then the run's tag.
const Logger& MakeLog(const RunOptions& options, const Logger& of_session,
                      std::optional<Logger>& made) {
  std::string id = of_session.id();
  if (!id.empty() && !options.tag.empty()) id += ':';
  id += options.tag;
  return made.emplace(std::move(id), options.severity.value_or(of_session.severity()),
                      options.log_verbosity, of_session.sink());
}

}  // namespace

RunPipeline::RunPipeline(Plan plan, RunEnvironment environment)
    : environment_(std::move(environment)),
      executor_(std::make_unique<Executor>(std::move(plan))),
      idle_trim_(*executor_, environment_.idle_time) {}

Result<std::unique_ptr<RunPipeline>> RunPipeline::Make(Plan plan, RunEnvironment environment) {
  std::unique_ptr<RunPipeline> pipeline(new RunPipeline(std::move(plan), std::move(environment)));
  TENON_ASSIGN_OR_RETURN(pipeline->captured_, CapturedRuns::Make(pipeline->environment_.providers,
                                                                 *pipeline->executor_));
  return pipeline;
}

Status RunPipeline::Run(const RunOptions& options, const RunArguments& run, RunAttempt& attempt,
                        Frame* frame) {
  // Admit: no run once the session ends, and only one at a time if a provider cannot overlap runs.
  const RunGate::Visit visit(gate_);
  if (!visit.is_admitted()) return Fail("the session is being released");
  TENON_ASSIGN_OR_RETURN(const RunSwitches switches, SwitchesOf(options, run));
  DeferredLock alone(serial_runs_, defer_lock);
  if (!environment_.runs_overlap) alone.lock();

  // Trace.
  TENON_ASSIGN_OR_RETURN(std::shared_ptr<Profiler> profiler, ProfilerFor(options));
  const bool is_runs_own = profiler != environment_.profiler;
  const uint64_t run_id = profiler == nullptr ? 0 : last_run_id_.fetch_add(1) + 1;
  RunTrace trace(std::move(profiler), is_runs_own, run_id, attempt);
  RunScope scope;
  const StopSignal stop(options.terminate, options.timeout);
  scope.stop = &stop;
  if (options.progress) scope.progress = &options.progress;
  std::optional<Logger> logger;
  if (options.HasLog()) scope.logger = &MakeLog(options, environment_.logger, logger);
  std::optional<NvtxRanges> nvtx;
  scope.plans_memory = ConfigFlag(options.config, "tenon.plans_memory", true);
  if (NvtxRanges::HasTool()) scope.nvtx = &nvtx.emplace(options.tag);
  Status status = Prepare(scope, run, attempt, trace.profiler());

  // A whole run takes a frame from the pool. A captured run has its own and may be replayed.
  CapturedRuns::Turn turn(switches.is_captured ? captured_.get() : nullptr, switches.graph_id, run);
  if (status.ok()) status = turn.Begin(scope);
  std::optional<FrameLease> lease;
  if (frame == nullptr) frame = turn.frame();
  if (frame == nullptr) frame = &*lease.emplace(executor_->frames());

  while (status.ok() && turn.IsToExecute()) {
    if (options.stream != nullptr) status = frame->streams().Use(*options.stream);
    if (!status.ok()) break;
    // Hooks: a provider whose start hook succeeded gets the end hook.
    RunHooks hooks(environment_.providers, options);
    status = hooks.Start();
    // Execute.
    if (status.ok()) {
      status = CatchExceptions([&] { return executor_->Run(scope, *frame, turn.arguments()); });
    }
    Note(status, hooks.End(switches.synchronizes));
    Note(status, frame->streams().EndRun(switches.synchronizes));
    status = turn.EndExecution(std::move(status), scope);
  }

  // Release.
  lease.reset();
  NameProvider(attempt);
  trace.End(status, options, attempt, environment_.logger);
  Shrink(switches.arenas);
  completed_runs_.fetch_add(status.ok(), std::memory_order_relaxed);
  idle_trim_.RunEnded();
  return status;
}

Result<RunPipeline::RunSwitches> RunPipeline::SwitchesOf(const RunOptions& options,
                                                         const RunArguments& run) const {
  RunSwitches switches;
  if (run.part) return switches;
  TENON_ASSIGN_OR_RETURN(switches.arenas, ArenasToShrink(options.config, plan().locations));
  switches.synchronizes =
      !ConfigFlag(options.config, "disable_synchronize_execution_providers", false);
  if (captured_ == nullptr) return switches;
  TENON_ASSIGN_OR_RETURN(switches.graph_id, ConfigInteger(options.config, "gpu_graph_id", 0));
  switches.is_captured = switches.graph_id != -1;
  return switches;
}

Result<std::shared_ptr<Profiler>> RunPipeline::ProfilerFor(const RunOptions& options) const {
  const std::shared_ptr<Profiler>& of_session = environment_.profiler;
  if (of_session && !of_session->is_over()) {
    if (options.profile_prefix) {
      TENON_LOG(environment_.logger, kWarning,
                "the session is profiled already; the run gets no file");
    }
    return of_session;
  }
  if (!options.profile_prefix) return nullptr;
  TENON_ASSIGN_OR_RETURN(
      auto profiler, Profiler::Open(*options.profile_prefix, options.config, environment_.logger));
  for (ExecutionProvider* const provider : environment_.providers) {
    if (profiler == nullptr) break;
    if (auto own = provider->CreateProfiler())
      profiler->AddProvider(provider->name(), std::move(own));
  }
  return profiler;
}

Status RunPipeline::Prepare(RunScope& scope, const RunArguments& run, RunAttempt& attempt,
                            Profiler* profiler) const {
  scope.threads = &environment_.threads;
  scope.profiler = profiler;
  scope.session_id = environment_.session_id;
  scope.meter = attempt.meter;
  scope.failed = &attempt.failed;
  if (run.part) scope.failure_logger = &environment_.logger;
  TENON_ASSIGN_OR_RETURN(scope.dump, NodeDump::OfProcess());
  return OkStatus();
}

void RunPipeline::NameProvider(RunAttempt& attempt) const {
  FailedNode& failed = attempt.failed;
  if (failed.provider < 0) return;
  failed.provider_name = environment_.providers[static_cast<size_t>(failed.provider)]->name();
}

void RunPipeline::Shrink(std::span<Allocator* const> arenas) {
  if (arenas.empty()) return;
  executor_->DropFrames();
  for (Allocator* const arena : arenas) {
    const Status status = arena->Shrink();
    if (status.ok()) continue;
    TENON_LOG(environment_.logger, kWarning, "the arena of '{}' did not shrink: {}",
              arena->info().name, status.message());
  }
}

Status RunPipeline::ReleaseCaptured(int32_t id) {
  const RunGate::Visit visit(gate_);
  if (!visit.is_admitted()) return Fail("the session is being released");
  if (captured_ == nullptr) return OkStatus();
  DeferredLock alone(serial_runs_, defer_lock);
  if (!environment_.runs_overlap) alone.lock();
  return captured_->Release(id);
}

void RunPipeline::Close() {
  gate_.Close();
  idle_trim_.Stop();
}

void RunPipeline::Release() {
  captured_.reset();
  executor_.reset();
}

}  // namespace tenon
