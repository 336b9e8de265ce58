// The runs of a session that a provider records and replays: provider-lifecycle PL-19 to PL-24.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "base/function_ref.h"
#include "base/mutex.h"
#include "runtime/executor.h"
#include "runtime/graph_capture.h"

namespace tenon {

// A recorded run goes on using the memory it was recorded with, so the session keeps that: of what
// is fed and fetched there is a copy of its own on the device, always at the same place, and what
// the caller gives is copied there and back. So a device never has to record again because a caller
// binds other tensors. Thread-safe; replays follow each other.
class CapturedRuns {
 public:
  // Of the first provider that records runs; null if none does. The plan is that of `executor`,
  // which outlives this. Error: kFail naming the node that cannot be replayed.
  static Result<std::unique_ptr<CapturedRuns>> Make(std::span<ExecutionProvider* const> providers,
                                                    Executor& executor);

  // Executes once, between the hooks of a run.
  using RunOnce = FunctionRef<Status(Frame& frame, std::span<const Value> feeds)>;
  // Replays the run with this id, or runs until the provider has recorded it. Feeds and fetches are
  // those of a whole run. Errors: kInvalidArgument for feeds of other types or shapes than those
  // of the recorded run; kFail if eight runs are not enough; otherwise those of the run or the
  // provider.
  Status Run(int32_t id, const RunScope& scope, const RunArguments& run, RunOnce run_once);
  // Has the provider forget the run with this id.
  Status Release(int32_t id);

 private:
  // A run that was recorded, or is about to be.
  struct Kept {
    explicit Kept(Executor& executor) : frame(executor.frames()) { frame->KeepValues(); }
    const FrameLease frame;
    std::vector<Value> feeds;  // copies on the device
  };

  CapturedRuns(ExecutionProvider& provider, GraphCapture& capture, Executor& executor)
      : provider_(provider), capture_(capture), executor_(executor) {}
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
