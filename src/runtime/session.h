// A session: a model that is ready to run.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/logging.h"
#include "base/status.h"
#include "ir/model.h"
#include "runtime/assignment.h"
#include "runtime/data_transfer.h"
#include "runtime/joined_shapes.h"
#include "runtime/location.h"
#include "runtime/provider.h"
#include "runtime/run_options.h"
#include "runtime/session_interface.h"
#include "runtime/session_options.h"
#include "runtime/session_parts.h"

namespace tenon {

class Environment;
class Executor;
class Frame;
class Profiler;
struct RunArguments;
struct Placement;
struct RunAttempt;
class RunMeter;
class RunPipeline;
class ThreadPool;

// Run may be called from several threads at once.
class Session {
 public:
  // Makes `model` ready to run. Errors name the node or value of the model that is at fault.
  static Result<std::unique_ptr<Session>> Create(Environment& environment, Model model,
                                                 SessionOptions options, SessionParts parts);
  // Refuses new runs, waits for those in progress, tells the providers that the session ends, frees
  // everything, and closes the trace.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Required inputs, in the model's order.
  const std::vector<SessionValue>& inputs() const { return interface_.inputs(); }
  const std::vector<SessionValue>& outputs() const { return interface_.outputs(); }
  // Initializers that a run may replace by feeding a value of that name.
  const std::vector<SessionValue>& overridable_initializers() const {
    return interface_.overridable_initializers();
  }
  // The places of names, and more about inputs and outputs.
  const SessionInterface& interface() const { return interface_; }
  const Model& model() const { return model_; }
  const SessionOptions& options() const { return options_; }
  std::span<const std::unique_ptr<ExecutionProvider>> providers() const { return parts_.providers; }

  // As OptimizeContext::assignment.
  const Assignment& assignment() const { return assignment_; }

  // Runs the model once.
  // feeds    one value per name, in any order: every entry of inputs() and any of
  //          overridable_initializers(). All uses of one symbolic dimension have the same size.
  // fetches  one per output name. kNone is filled; a tensor is written in place if type and shape
  //          are the output's.
  // fetch_memory  the memory of fetches that are kNone, one per output name; null entries, and an
  //          empty list, mean the CPU's memory.
  // errors   kInvalidArgument  unknown, duplicate or missing name, wrong type or shape, with the
  //                            name
  //          kFail             the run was terminated or passed its timeout
  //          otherwise what the failing node reports; the text names it
  //          After any error the session stays usable.
  Status Run(const RunOptions& options, std::span<const std::string_view> feed_names,
             std::span<const Value> feeds, std::span<const std::string_view> fetch_names,
             std::span<Value> fetches, std::span<const MemoryInfo* const> fetch_memory = {},
             RunAttempt* attempt = nullptr);

  // Runs the plan in parts. Not to be used once the session has ended.
  Executor& executor();
  // Runs a part of the plan over `frame`, which is of executor() and does not outlive the session.
  // Providers' end hooks do not wait for the device. A node's failure is also logged at severity
  // kError. Errors: kInvalidArgument for a feed of another type or shape than its value has, and
  // for a session that is to run branches in parallel; otherwise like Executor::Run.
  // placements  gets what the part's nodes made, and the log what memory it took; may be null
  Status RunPart(const RunOptions& options, Frame& frame, const RunArguments& run,
                 std::vector<Placement>* placements = nullptr);

  // The check that RunPart makes first: feeds have the types and shapes of their values.
  Status CheckPart(const RunArguments& run) const;

  // Tells the providers that the session ends and frees everything but names, types and metadata.
  // Refuses new runs and waits for those in progress. The trace is closed unless another session
  // continues it. Called at most once; the destructor calls it if needed.
  void End(SessionEndReason reason, bool trace_goes_on = false);
  // Why the destructor ends the session, unless its owner released it.
  void set_end_reason(SessionEndReason reason) { end_reason_ = reason; }
  bool has_ended() const { return has_ended_.load(); }

  // Whether a node of one of these domains has run before step `step` failed.
  bool HasRunBefore(uint32_t step, const std::set<std::string, std::less<>>& domains) const;

  // Writes and closes the session's trace. Returns its path; "" if there is no trace or it was
  // closed before. Error: kFail if it could not be written.
  Result<std::string> EndProfiling();
  // The session's profiler; null if it never had one.
  const std::shared_ptr<Profiler>& profiler() const { return profiler_; }
  const Logger& logger() const { return logger_; }
  // Makes the provider that captures runs forget the one with this id. Ok if there is neither.
  Status ReleaseCapturedGraph(int32_t id);

 private:
  Session(Environment& environment, Model model, SessionOptions options, SessionParts parts);
  void Register(ExecutionProvider& provider);
  Status Initialize();
  Status TellInitialized();
  void TellEnd();
  void TellEnd(ExecutionProvider& provider);
  void ReleaseState(bool keeps_graph);
  void AddProfilerOf(ExecutionProvider& provider, Profiler& profiler) const;
  Status StartOwnThreads();
  Status OptimizeAndPlan();
  // Logs what a part of a run took in each location.
  void LogMemory(const RunMeter& meter) const;
  bool AreAllNew(std::span<const size_t> places, std::span<const Value> fetches) const;

  Environment& environment_;
  Model model_;
  SessionOptions options_;
  SessionParts parts_;
  JoinedShapes shapes_;
  std::vector<ExecutionProvider*> providers_;  // parts_.providers
  DataTransfers transfers_;
  const std::shared_ptr<Profiler> profiler_;
  const uint32_t id_;
  Assignment assignment_;
  std::vector<Location> memories_;  // of the providers
  Logger logger_;
  std::unique_ptr<ThreadPool> own_threads_;
  SessionInterface interface_;
  bool runs_overlap_ = true;
  std::unique_ptr<RunPipeline> pipeline_;  // null until the session is made
  std::atomic<uint64_t> parts_run_ = 0;    // with a report
  SessionEndReason end_reason_ = SessionEndReason::kReleased;
  std::atomic<bool> has_ended_ = false;
};

}  // namespace tenon
