// A session: a model made ready to run.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/block_pool.h"
#include "base/function_ref.h"
#include "ir/model.h"
#include "ir/shape_context.h"
#include "runtime/captured_runs.h"
#include "runtime/environment.h"
#include "runtime/executor.h"
#include "runtime/fused_nodes.h"
#include "runtime/joined_shapes.h"
#include "runtime/profiler.h"
#include "runtime/provider.h"
#include "runtime/run_gate.h"
#include "runtime/run_options.h"
#include "runtime/session_options.h"
#include "runtime/session_parts.h"

namespace tenon {

// A graph input, output or overridable initializer as the model declares it.
struct SessionValue {
  std::string name;
  ValueType type;
};

// One try of a run that may be tried again on another session.
struct RunAttempt {
  uint32_t number = 1;
  // Whether another try may follow: then the trace gets no "model_run" for a failing provider.
  bool may_be_repeated = false;
  // Counts what the run does; may be null.
  RunMeter* meter = nullptr;
  // Set by the run: the node that failed, and when the first try began, if that was not traced.
  FailedNode failed;
  std::optional<int64_t> trace_start;
};

// Run may be called from several threads at once.
class Session {
 public:
  // Prepares `model`. Errors name the node or value of the model that is at fault.
  static Result<std::unique_ptr<Session>> Create(Environment& environment, Model model,
                                                 SessionOptions options, SessionParts parts);
  // Refuses new runs, waits for those in flight, tells the providers that the session ends, frees
  // everything, and closes the trace.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Required inputs, in the model's order.
  const std::vector<SessionValue>& inputs() const { return inputs_; }
  const std::vector<SessionValue>& outputs() const { return outputs_; }
  // Initializers that a run may replace by feeding a value of that name.
  const std::vector<SessionValue>& overridable_initializers() const { return overridables_; }
  // The session's own text of the name of an input, required or not, or of an output. Error:
  // kInvalidArgument, with the names that there are.
  Result<std::string_view> FindInputName(std::string_view name) const;
  Result<std::string_view> FindOutputName(std::string_view name) const;
  const Model& model() const { return model_; }
  const SessionOptions& options() const { return options_; }
  std::span<const std::unique_ptr<ExecutionProvider>> providers() const { return parts_.providers; }

  // The nodes of the model that providers fused.
  const FusedNodes& fused_nodes() const { return fused_nodes_; }

  // Runs the model once.
  // feeds    one value per name, in any order: every entry of inputs() and any of
  //          overridable_initializers(). All uses of one symbolic dimension have the same size.
  // fetches  one per output name. kNone is filled; a tensor is written in place if type and shape
  //          are the output's.
  // fetch_memory  where fetches that are kNone shall lie, one per output name; null entries, and
  //          all if it is empty: in the CPU's memory.
  // errors   kInvalidArgument  unknown, duplicate or missing name, wrong type or shape, with the
  // name
  //          kFail             the run was terminated or passed its timeout
  //          otherwise what the failing node reports; the text names it
  //          After any error the session stays usable.
  Status Run(const RunOptions& options, std::span<const std::string_view> feed_names,
             std::span<const Value> feeds, std::span<const std::string_view> fetch_names,
             std::span<Value> fetches, std::span<const MemoryInfo* const> fetch_memory = {},
             RunAttempt* attempt = nullptr);

  // The plan, for those who run it in parts. Not to be used once the session has ended.
  Executor& executor() { return *executor_; }
  // Runs a part of the plan over `frame`, which is of executor() and does not outlive the session.
  // Providers hear of a run without a wait at its end. A node's failure is logged at severity
  // kError, too. Errors: kInvalidArgument for a feed of another type or shape than its value has,
  // and for a session that is to run branches in parallel; otherwise as Executor::Run.
  Status RunPart(const RunOptions& options, Frame& frame, const RunArguments& run);

  // What RunPart checks first: that feeds have the types and shapes of their values.
  Status CheckPart(const RunArguments& run) const;

  // Tells the providers that the session ends and frees everything but the description: names,
  // types and metadata. Refuses new runs and waits for those in flight. The trace is closed unless
  // another session goes on with it. Called once at most; by the destructor at the latest.
  void End(SessionEndReason reason, bool trace_goes_on = false);
  // Why the destructor ends the session, if not because its owner released it.
  void set_end_reason(SessionEndReason reason) { end_reason_ = reason; }
  bool has_ended() const { return has_ended_.load(); }

  // Whether a node of one of these domains has run before that step failed.
  bool HasRunBefore(uint32_t step, const std::set<std::string, std::less<>>& domains) const;

  // Writes and closes the session's trace. Its path; "" if there is none, or none any more.
  // Error: kFail if it could not be written.
  Result<std::string> EndProfiling();
  // The session's profiler; null if it never had one.
  const std::shared_ptr<Profiler>& profiler() const { return profiler_; }
  const Logger& logger() const { return logger_; }
  // Has the provider that captures runs forget the one with this id. Ok if there is neither.
  Status ReleaseCapturedGraph(int32_t id);

 private:
  // Symbolic dimensions and the sizes that feeds gave them.
  using SymbolSizes = PooledVector<std::pair<std::string_view, int64_t>>;

  // Feeds and fetches of one Run in the executor's order; reused, so that a steady run allocates
  // nothing.
  struct Call {
    std::vector<Value> feeds;
    std::vector<Value> fetches;
    std::vector<const MemoryInfo*> fetch_memory;
    SymbolSizes symbols;
    RunAttempt* attempt = nullptr;
  };

  Session(Environment& environment, Model model, SessionOptions options, SessionParts parts);
  void Register(ExecutionProvider& provider);
  Status Initialize();
  Status TellInitialized();
  void TellEnd();
  void TellEnd(ExecutionProvider& provider);
  void ReleaseState(bool keeps_graph);
  void AddProfilerOf(ExecutionProvider& provider, Profiler& profiler) const;
  Result<std::shared_ptr<Profiler>> ProfilerOf(const RunOptions& options);
  // What a run does between its begin and its end.
  using Work = FunctionRef<Status(const RunScope& scope)>;
  Status RunTraced(const RunOptions& options, RunAttempt* attempt, Profiler* profiler, Work work);
  Status RunOrReplay(const RunOptions& options, Call& call, const RunScope& scope);
  Status RunBetweenHooks(const RunOptions& options, Frame& frame, bool synchronize,
                         FunctionRef<Status()> execute);
  void EndAttempt(const Status& status, RunAttempt& attempt, const Profiler* profiler,
                  TraceSpan& span) const;
  Status StartOwnThreads();
  Status OptimizeAndPlan();
  void DescribeInterface();
  // What inference found out about the outputs, in the model's own names.
  void DescribeOutputs();
  Status CheckFeed(const SessionValue& declared, const Value& feed, SymbolSizes& symbols) const;
  Result<size_t> FindInput(std::string_view name) const;
  Result<size_t> FindOutput(std::string_view name) const;
  std::unique_ptr<Call> TakeCall();
  void ReturnCall(std::unique_ptr<Call> call);
  Status RunCall(Call& call, const RunOptions& options,
                 std::span<const std::string_view> feed_names, std::span<const Value> feeds,
                 std::span<const std::string_view> fetch_names, std::span<Value> fetches,
                 std::span<const MemoryInfo* const> fetch_memory);
  Status CheckNothingMissing(const Call& call) const;
  // Has arenas of the session give back what they cache; failures are logged.
  void Shrink(std::span<Allocator* const> arenas);
  Status RunInOrder(const RunOptions& options, RunAttempt* attempt, Work work);
  // Called after a run: if it left much memory behind, that is given back when no other run comes.
  void WatchIdleness();
  // Gives pooled memory back to the system if no run has ended lately; else when to look again.
  std::optional<std::chrono::steady_clock::time_point> TrimIfIdle();

  Environment& environment_;
  Model model_;
  SessionOptions options_;
  SessionParts parts_;
  JoinedShapes shapes_;
  std::vector<ExecutionProvider*> providers_;  // parts_.providers
  DataTransfers transfers_;
  const std::shared_ptr<Profiler> profiler_;
  const uint32_t id_;
  FusedNodes fused_nodes_;
  std::vector<Location> memories_;  // of the providers
  Logger logger_;
  std::unique_ptr<ThreadPool> own_threads_;
  // All graph inputs in plan order; the interface lists are parts of it.
  std::vector<SessionValue> graph_inputs_;
  std::vector<bool> is_required_;
  std::vector<SessionValue> inputs_, outputs_, overridables_;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<CapturedRuns> captured_;  // null: no provider captures runs
  Mutex mutex_;
  std::vector<std::unique_ptr<Call>> idle_calls_;
  Mutex serial_runs_;  // held by a run if a provider cannot overlap runs
  bool runs_overlap_ = true;
  RunGate gate_;
  std::atomic<uint64_t> completed_runs_ = 0;
  std::atomic<uint64_t> last_run_id_ = 0;
  std::atomic<uint64_t> parts_run_ = 0;  // with a report
  // How long after a run pooled memory is given back; 0: never.
  std::chrono::microseconds idle_time_ = std::chrono::seconds(2);
  std::atomic<std::chrono::steady_clock::time_point> last_run_end_{};  // while that is watched
  std::atomic<uint32_t> watched_in_ = 0;  // 1 + the generation of the process; 0: nobody watches
  SessionEndReason end_reason_ = SessionEndReason::kReleased;
  std::atomic<bool> has_ended_ = false;
};

}  // namespace tenon
