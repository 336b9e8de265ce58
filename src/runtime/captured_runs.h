// The runs of a session that a provider records and replays: provider-lifecycle, PL-19 to PL-24.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/mutex.h"
#include "runtime/executor.h"
#include "runtime/graph_capture.h"

namespace tenon {

// A recorded run goes on using the memory it was recorded with, so the session keeps that memory.
// It also keeps copies of the feeds and fetches on the device, always at the same place; the
// caller's tensors are copied there and back. So no new recording is needed when a caller binds
// other tensors. Thread-safe; replays run one after another.
class CapturedRuns {
  struct Kept;

 public:
  // The runs of the first provider that records runs; null if none does. The plan is that of
  // `executor`, which outlives the result. Error: kFail naming the node that cannot be replayed.
  static Result<std::unique_ptr<CapturedRuns>> Make(std::span<ExecutionProvider* const> providers,
                                                    Executor& executor);

  // One run by a caller. It is executed once, or, if it is to be captured, replayed, or executed
  // until the provider has recorded it.
  class Turn {
   public:
    // `run` is a run of the whole plan; `runs` is null if it is not to be captured.
    Turn(CapturedRuns* runs, int32_t id, const RunArguments& run);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

    // Replays a recorded run, else copies the feeds. Errors: kInvalidArgument for feeds of other
    // types or shapes than those of the recorded run; otherwise those of the provider.
    Status Begin(const RunScope& scope);
    // Whether the run is to be executed (again), with arguments(), over frame() if that is not
    // null.
    bool IsToExecute() const { return is_to_execute_; }
    Frame* frame() const;
    const RunArguments& arguments() const { return arguments_; }
    // Called after each execution with its status. Takes the outputs if the run was recorded.
    // Error: `status`; kFail if eight executions were not enough.
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

  // Makes the provider forget the run with this id.
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
