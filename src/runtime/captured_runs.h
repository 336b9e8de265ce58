// The runs of a session that a provider records and replays: provider-lifecycle PL-19 to PL-24.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "runtime/executor.h"
#include "runtime/graph_capture.h"

namespace tenon {

// A recorded run goes on using the memory it was recorded with, so the session keeps that: of what
// is fed and fetched there is a copy of its own on the device, always at the same place, and what
// the caller gives is copied there and back. So a device never has to record again because a caller
// binds other tensors. Thread-safe; replays follow each other.
class CapturedRuns {
  struct Kept;

 public:
  // Of the first provider that records runs; null if none does. The plan is that of `executor`,
  // which outlives this. Error: kFail naming the node that cannot be replayed.
  static Result<std::unique_ptr<CapturedRuns>> Make(std::span<ExecutionProvider* const> providers,
                                                    Executor& executor);

  // One run by a caller: executed once; or, if it is to be captured, replayed, or executed until
  // the provider has recorded it.
  class Turn {
   public:
    // The caller's whole run; `runs` is null if it is not to be captured.
    Turn(CapturedRuns* runs, int32_t id, const RunArguments& run);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Replays the run, or copies its feeds. Errors: kInvalidArgument for feeds of other types or
    // shapes than those of the recorded run; otherwise those of the provider.
    Status Begin(const RunScope& scope);
    // Whether the run is to be executed, once more maybe, and with what: over `frame()` if that is
    // not null.
    bool IsToExecute() const { return is_to_execute_; }
    Frame* frame() const;
    const RunArguments& arguments() const { return arguments_; }
    // After an execution, with what it ended with: takes the outputs if it was recorded. Error:
    // `status`; kFail if eight executions are not enough.
    Status EndExecution(Status status, const RunScope& scope);

   private:
    CapturedRuns* const runs_;
    const int32_t id_;
    DeferredLock lock_;
    RunArguments arguments_;
    std::unique_ptr<Kept> kept_;  // until the run is recorded
    int executions_ = 0;
    bool is_to_execute_ = true;
  };

  ~CapturedRuns();

  // Has the provider forget the run with this id.
  Status Release(int32_t id);

 private:
  CapturedRuns(ExecutionProvider& provider, GraphCapture& capture, Executor& executor);
  Status CheckPlan(int32_t provider) const;
  Result<std::vector<Value>> Stage(std::span<const Value> feeds) const;
  Status StageAgain(std::span<const Value> feeds, Kept& kept) const;
  Status Replay(int32_t id, const RunScope& scope, const RunArguments& run);

  ExecutionProvider& provider_;
  GraphCapture& capture_;
  Executor& executor_;
  Mutex mutex_;
  std::map<int32_t, std::unique_ptr<Kept>> kept_;  // by id
};

}  // namespace tenon
