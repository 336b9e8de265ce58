// The stages of a session's runs: admit, trace, call the providers' hooks, execute, release.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "runtime/captured_runs.h"
#include "runtime/executor.h"
#include "runtime/idle_trim.h"
#include "runtime/run_gate.h"

namespace tenon {

class ExecutionProvider;
class Logger;
class Profiler;
struct RunAttempt;
struct RunOptions;
class ThreadPool;

// What the runs of a session have in common. All of it outlives the pipeline.
struct RunEnvironment {
  std::span<ExecutionProvider* const> providers;
  bool runs_overlap = true;  // whether every provider allows that
  ThreadPool& threads;
  const Logger& logger;
  std::shared_ptr<Profiler> profiler;  // of the session; may be null
  uint32_t session_id = 0;
  // How long after the last run pooled memory is freed; 0: never.
  std::chrono::microseconds idle_time{0};
};

// Thread-safe.
class RunPipeline {
 public:
  // Error: that of CapturedRuns::Make.
  static Result<std::unique_ptr<RunPipeline>> Make(Plan plan, RunEnvironment environment);
  RunPipeline(const RunPipeline&) = delete;
  RunPipeline& operator=(const RunPipeline&) = delete;

  // Runs the plan once, or a part of it over `frame`, which is null for the whole plan. `attempt`
  // receives what the next attempt must know. For a part, providers' end hooks do not wait for the
  // device, and a node's failure is also logged at severity kError. Errors: kFail once the pipeline
  // is closed; kInvalidArgument for config entries; otherwise those of providers and of
  // Executor::Run.
  Status Run(const RunOptions& options, const RunArguments& run, RunAttempt& attempt,
             Frame* frame = nullptr);

  // Makes the provider that captures runs forget the one with this id. Ok if there is neither.
  Status ReleaseCaptured(int32_t id);

  // Refuses new runs and waits for those in progress.
  void Close();
  // Frees the plan with its kernels, frames, streams and constants. Close must have been called.
  void Release();

  // Valid until Release.
  Executor& executor() { return *executor_; }
  const Plan& plan() const { return executor_->plan(); }
  uint64_t completed_runs() const { return completed_runs_.load(); }

 private:
  // What a run's config entries select.
  struct RunSwitches {
    std::vector<Allocator*> arenas;  // to shrink afterwards
    bool synchronizes = false;       // whether the end hooks wait for the devices
    bool is_captured = false;
    int32_t graph_id = -1;
  };

  RunPipeline(Plan plan, RunEnvironment environment);
  Result<RunSwitches> SwitchesOf(const RunOptions& options, const RunArguments& run) const;
  // The profiler that records the run: the session's, or one that the run asks for. May be null.
  Result<std::shared_ptr<Profiler>> ProfilerFor(const RunOptions& options) const;
  Status Prepare(RunScope& scope, const RunArguments& run, RunAttempt& attempt,
                 Profiler* profiler) const;
  // Adds the provider's name to the failed node; the executor knows only its index.
  void NameProvider(RunAttempt& attempt) const;
  // Shrinks arenas of the session; failures are logged.
  void Shrink(std::span<Allocator* const> arenas);

  const RunEnvironment environment_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<CapturedRuns> captured_;  // null: no provider captures runs
  IdleTrim idle_trim_;
  RunGate gate_;
  Mutex serial_runs_;  // held by a run if a provider cannot overlap runs
  std::atomic<uint64_t> last_run_id_ = 0;
  std::atomic<uint64_t> completed_runs_ = 0;
};

}  // namespace tenon
