#include "runtime/session.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/exception_barrier.h"
#include "base/thread_affinity.h"
#include "runtime/arena_shrinkage.h"
#include "runtime/build_plan.h"
#include "runtime/config.h"
#include "runtime/node_dump.h"
#include "runtime/optimize.h"
#include "runtime/partition.h"
#include "runtime/run_hooks.h"
#include "runtime/run_report.h"
#include "runtime/traced_allocator.h"
#include "tensor/arena.h"
#include "tensor/lasting_memory.h"

namespace tenon {
namespace {

template <class List>
std::vector<std::string> NamesOf(const List& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.push_back(value.name);
  return names;
}

std::atomic<uint32_t> last_session_id = 0;

// Names of dimensions that a model declares.
using DimNames = std::set<std::string, std::less<>>;

void CollectNames(const std::vector<SessionValue>& values, DimNames& names) {
  for (const SessionValue& value : values) {
    if (!value.type.shape) continue;
    for (const Dim& dim : *value.type.shape) names.emplace(dim.symbol_name());
  }
}

// Sizes that inference gave a name of its own are unknown to who wrote the model.
void ForgetOtherNames(ValueType& type, const DimNames& names) {
  if (!type.shape) return;
  for (size_t axis = 0; axis < type.shape->rank(); ++axis) {
    Dim& dim = (*type.shape)[axis];
    if (!dim.is_number() && !names.contains(dim.symbol_name())) dim = Dim::Unknown();
  }
}

}  // namespace

Session::Session(Environment& environment, Model model, SessionOptions options, SessionParts parts)
    : environment_(environment),
      model_(std::move(model)),
      options_(std::move(options)),
      parts_(std::move(parts)),
      shapes_(parts_.shape_functions),
      transfers_(&environment.transfers()),
      profiler_(parts_.profiler),
      id_(++last_session_id),
      logger_(options_.log_id.empty() ? environment.logger().id() : options_.log_id,
              options_.severity.value_or(environment.logger().severity()), options_.log_verbosity,
              options_.log_sink.value_or(environment.logger().sink())) {
  for (const auto& provider : parts_.providers) Register(*provider);
  if (shapes_.IsJoined()) parts_.shape_functions = &shapes_;
}

void Session::Register(ExecutionProvider& provider) {
  const StringMap before = options_.config;
  provider.AdjustConfig(options_.config);
  for (const auto& [key, value] : options_.config) {
    const auto entry = before.find(key);
    if (entry != before.end() && entry->second == value) continue;
    TENON_LOG(logger_, kInfo, "{} sets '{}' to '{}', which was {}", provider.name(), key, value,
              entry == before.end() ? "not set" : Format("'{}'", entry->second));
  }
  if (const ShapeFunctionTable* const operators = provider.operators()) shapes_.Add(operators);
  runs_overlap_ &= provider.SupportsConcurrentRuns();
  if (auto transfer = provider.data_transfer()) transfers_.Add(std::move(transfer));
  provider.SetLogger(logger_);
  if (profiler_) AddProfilerOf(provider, *profiler_);
  providers_.push_back(&provider);
}

void Session::AddProfilerOf(ExecutionProvider& provider, Profiler& profiler) const {
  auto own = provider.CreateProfiler();
  if (own) profiler.AddProvider(provider.name(), std::move(own), this);
}

Result<std::unique_ptr<Session>> Session::Create(Environment& environment, Model model,
                                                 SessionOptions options, SessionParts parts) {
  const size_t nulls = std::erase(parts.providers, nullptr);
  std::unique_ptr<Session> session(
      new Session(environment, std::move(model), std::move(options), std::move(parts)));
  Status status = nulls > 0 ? Fail("{} of the session's execution providers are null", nulls)
                            : CatchExceptions([&] { return session->Initialize(); });
  session->parts_.failed = nullptr;
  if (status.ok()) status = session->TellInitialized();
  if (status.ok()) return session;
  session->end_reason_ = SessionEndReason::kInitFailed;
  return Failure(std::move(status));
}

Status Session::StartOwnThreads() {
  const bool has_own = options_.intra_op_threads > 0 ||
                       options_.thread_callbacks.create != nullptr ||
                       options_.work_callbacks.are_set();
  if (!has_own) return OkStatus();
  const StringMap& config = options_.config;
  ThreadPoolOptions threads;
  threads.threads = options_.intra_op_threads;
  threads.callbacks = options_.thread_callbacks;
  threads.work = options_.work_callbacks;
  TENON_ASSIGN_OR_RETURN(
      threads.spin, ConfigMicroseconds(config, "session.intra_op.spin_duration_us", threads.spin));
  if (!ConfigFlag(config, "session.intra_op.allow_spinning", true)) {
    threads.spin = std::chrono::microseconds(0);
  }
  const auto affinities = config.find(std::string_view("session.intra_op_thread_affinities"));
  if (affinities != config.end()) {
    TENON_ASSIGN_OR_RETURN(threads.affinities, ParseThreadAffinities(affinities->second));
  }
  threads.denormals_as_zero = ConfigFlag(config, "session.set_denormal_as_zero", false);
  own_threads_ = std::make_unique<ThreadPool>(std::move(threads));
  return OkStatus();
}

Status Session::Initialize() {
  const TraceScope context(profiler_.get(), "init");
  const TraceSpan span(profiler_.get(), TraceCategory::kSession, "session_initialization");
  TENON_RETURN_IF_ERROR(StartOwnThreads());
  TENON_ASSIGN_OR_RETURN(idle_time_,
                         ConfigMicroseconds(options_.config, "tenon.idle_trim_us", idle_time_));
  FixFreeDimensions(*model_.graph, options_);
  DescribeInterface();
  const bool may_fall_back = !ConfigFlag(options_.config, "session.disable_cpu_ep_fallback", false);
  if (!may_fall_back && !parts_.is_last_implicit) {
    return InvalidArgument(
        "session.disable_cpu_ep_fallback is 1, but {} was added to the session explicitly",
        providers_.back()->name());
  }
  return OptimizeAndPlan();
}

// All providers hear of it; the first failure is the session's.
Status Session::TellInitialized() {
  const TraceScope context(profiler_.get(), "init");
  Status first;
  for (ExecutionProvider* provider : providers_) {
    Status status = CatchExceptions([&] { return provider->OnSessionInitialized(); });
    if (first.ok()) first = std::move(status);
  }
  return first;
}

void Session::DescribeInterface() {
  const Graph& graph = *model_.graph;
  for (const ValueId id : graph.inputs) {
    const ValueInfo& info = graph.value(id);
    graph_inputs_.push_back({info.name, info.type});
    is_required_.push_back(!info.initializer.has_value() &&
                           info.type.kind != Value::Kind::kOptional);
    (info.initializer.has_value() ? overridables_ : inputs_).push_back({info.name, info.type});
  }
  for (const GraphOutput& output : graph.outputs()) {
    outputs_.push_back({output.name, graph.value(output.value).type});
  }
}

void Session::DescribeOutputs() {
  DimNames declared;
  CollectNames(graph_inputs_, declared);
  CollectNames(outputs_, declared);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    ValueType& type = outputs_[i].type;
    const ValueType& inferred = model_.graph->value(model_.graph->outputs()[i].value).type;
    if (Result<ValueType> merged = MergeTypes(type, inferred)) type = std::move(*merged);
    ForgetOtherNames(type, declared);
  }
}

Status Session::OptimizeAndPlan() {
  ThreadPool& threads = own_threads_ ? *own_threads_ : environment_.threads();
  if (!parts_.shared_weights) parts_.shared_weights = environment_.shared_weights();
  TENON_RETURN_IF_ERROR(OptimizeModel(model_, options_, parts_,
                                      {threads, logger_, fused_nodes_, parts_.shared_weights}));
  DescribeOutputs();
  model_.graph->DropUnusedValues();
  TENON_ASSIGN_OR_RETURN(const size_t limit,
                         ConfigBytes(options_.config, "session.memory_limit", 0));
  const auto traced = [&](std::shared_ptr<Allocator> memory, const std::string& provider,
                          MemoryEvents level, bool feeds_arena) {
    return std::make_shared<TracedAllocator>(std::move(memory), provider, level, feeds_arena,
                                             profiler_);
  };
  for (ExecutionProvider* provider : providers_) {
    Location memory = MemoryOf(*provider);
    memory.allocator =
        traced(std::move(memory.allocator), provider->name(), MemoryEvents::kDevice, false);
    memories_.push_back(std::move(memory));
  }
  const std::string& host = providers_.back()->name();
  std::shared_ptr<Allocator> pool = parts_.memory;
  if (!pool) {
    pool = std::make_shared<CachingArena>(
        traced(SharedLastingMemory(), host, MemoryEvents::kDevice, true), limit);
  }
  TENON_ASSIGN_OR_RETURN(
      const size_t memory_plans,
      ConfigCount(options_.config, "tenon.mem_pattern_cache_size", options_.plans_memory ? 64 : 0));
  const Result<NodeDump*> dump = NodeDump::OfProcess();  // runs report its error
  const PlanParts plan_parts{providers_,
                             memories_,
                             traced(std::move(pool), host, MemoryEvents::kAll, false),
                             &transfers_,
                             parts_.shared_weights,
                             parts_.failed,
                             memory_plans,
                             dump && *dump != nullptr && (*dump)->settings().shows_values()};
  TENON_ASSIGN_OR_RETURN(Plan plan, BuildPlan(*model_.graph, plan_parts));
  TENON_LOG(logger_, kInfo, "graph '{}' runs in {} steps", model_.graph->name, plan.steps.size());
  executor_ = std::make_unique<Executor>(std::move(plan));
  TENON_ASSIGN_OR_RETURN(captured_, CapturedRuns::Make(providers_, *executor_));
  return OkStatus();
}

Result<size_t> Session::FindInput(std::string_view name) const {
  for (size_t i = 0; i < graph_inputs_.size(); ++i) {
    if (graph_inputs_[i].name == name) return i;
  }
  return InvalidArgument("Invalid input name: '{}'{}; the model's inputs are: {}", name,
                         DidYouMean(name, NamesOf(graph_inputs_)), JoinNames(NamesOf(inputs_)));
}

Result<size_t> Session::FindOutput(std::string_view name) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].name == name) return i;
  }
  return InvalidArgument("Invalid output name: '{}'{}; the model's outputs are: {}", name,
                         DidYouMean(name, NamesOf(outputs_)), JoinNames(NamesOf(outputs_)));
}

namespace {

// That what a sequence or map holds is of the declared types.
Status CheckContent(const std::string& name, const ValueType& type, const Value& feed) {
  const auto mismatch = [&](const ValueType& expected, const Value& value) {
    return InvalidArgument("input '{}': unexpected data type; expected {} in it, got {}", name,
                           expected.TypeName(), ValueType::Of(value).TypeName());
  };
  if (!type.held) return OkStatus();
  if (feed.kind() == Value::Kind::kMap) {
    const Map& map = feed.map();
    const bool fits =
        map.keys.type() == type.element_type && map.values.type() == type.held->element_type;
    return fits ? OkStatus() : mismatch(type, feed);
  }
  if (feed.kind() != Value::Kind::kSequence) return OkStatus();
  for (const Value& element : feed.sequence().elements) {
    const bool fits = element.kind() == type.held->kind &&
                      (!element.is_tensor() || element.tensor().type() == type.held->element_type);
    if (!fits) return mismatch(*type.held, element);
    TENON_RETURN_IF_ERROR(CheckContent(name, *type.held, element));
  }
  return OkStatus();
}

}  // namespace

Status Session::CheckFeed(const SessionValue& declared, const Value& feed,
                          SymbolSizes& symbols) const {
  const bool is_in_optional = declared.type.kind == Value::Kind::kOptional &&
                              feed.kind() != Value::Kind::kOptional && declared.type.held;
  const ValueType& type = is_in_optional ? *declared.type.held : declared.type;
  if (type.kind == Value::Kind::kNone || type.kind == Value::Kind::kOptional) return OkStatus();
  if (feed.kind() != type.kind) {
    return InvalidArgument("input '{}': expected {}, got a {}", declared.name, type.TypeName(),
                           ValueKindName(feed.kind()));
  }
  if (!feed.is_tensor()) return CheckContent(declared.name, type, feed);
  const Tensor& tensor = feed.tensor();
  if (tensor.type() != type.element_type) {
    return InvalidArgument("input '{}': unexpected data type; expected tensor({}), got tensor({})",
                           declared.name, DataTypeName(type.element_type),
                           DataTypeName(tensor.type()));
  }
  if (!type.shape) return OkStatus();
  if (type.shape->rank() != tensor.rank()) {
    return InvalidArgument("input '{}': expected rank {} {}, got rank {} {}", declared.name,
                           type.shape->rank(), *type.shape, tensor.rank(), tensor.shape());
  }
  for (size_t axis = 0; axis < tensor.rank(); ++axis) {
    const Dim& dim = (*type.shape)[axis];
    const int64_t size = tensor.shape()[axis];
    const auto mismatch = [&](int64_t expected) {
      return InvalidArgument("input '{}': expected size {} at axis {} of {}, got {}", declared.name,
                             expected, axis, *type.shape, tensor.shape());
    };
    if (dim.is_number()) {
      if (dim.value() != size) return mismatch(dim.value());
      continue;
    }
    const std::string_view symbol = dim.symbol_name();
    if (symbol.empty()) continue;
    const auto known = std::find_if(symbols.begin(), symbols.end(),
                                    [&](const auto& entry) { return entry.first == symbol; });
    if (known == symbols.end()) {
      symbols.emplace_back(symbol, size);
    } else if (known->second != size) {
      return mismatch(known->second);
    }
  }
  return OkStatus();
}

Result<std::string_view> Session::FindInputName(std::string_view name) const {
  TENON_ASSIGN_OR_RETURN(const size_t index, FindInput(name));
  return std::string_view(graph_inputs_[index].name);
}

Result<std::string_view> Session::FindOutputName(std::string_view name) const {
  TENON_ASSIGN_OR_RETURN(const size_t index, FindOutput(name));
  return std::string_view(outputs_[index].name);
}

std::unique_ptr<Session::Call> Session::TakeCall() {
  {
    const MutexLock lock(mutex_);
    if (!idle_calls_.empty()) {
      std::unique_ptr<Call> call = std::move(idle_calls_.back());
      idle_calls_.pop_back();
      return call;
    }
  }
  auto call = std::make_unique<Call>();
  call->feeds.resize(graph_inputs_.size());
  call->fetches.resize(outputs_.size());
  call->fetch_memory.resize(outputs_.size());
  return call;
}

void Session::ReturnCall(std::unique_ptr<Call> call) {
  std::fill(call->feeds.begin(), call->feeds.end(), Value());
  std::fill(call->fetches.begin(), call->fetches.end(), Value());
  std::fill(call->fetch_memory.begin(), call->fetch_memory.end(), nullptr);
  call->attempt = nullptr;
  call->symbols.clear();
  const MutexLock lock(mutex_);
  idle_calls_.push_back(std::move(call));
}

Status Session::Run(const RunOptions& options, std::span<const std::string_view> feed_names,
                    std::span<const Value> feeds, std::span<const std::string_view> fetch_names,
                    std::span<Value> fetches, std::span<const MemoryInfo* const> fetch_memory,
                    RunAttempt* attempt) {
  if (!gate_.Enter()) return Fail("the session is being released");
  Result<std::vector<Allocator*>> arenas =
      ArenasToShrink(options.info.config, executor_->plan().locations);
  Status status;
  if (arenas) {
    std::unique_ptr<Call> call = TakeCall();
    call->attempt = attempt;
    status = RunCall(*call, options, feed_names, feeds, fetch_names, fetches, fetch_memory);
    ReturnCall(std::move(call));
    Shrink(*arenas);
  } else {
    status = std::move(arenas.error());
  }
  completed_runs_.fetch_add(status.ok(), std::memory_order_relaxed);
  WatchIdleness();
  gate_.Leave();
  return status;
}

void Session::Shrink(std::span<Allocator* const> arenas) {
  if (arenas.empty()) return;
  executor_->DropFrames();
  for (Allocator* const arena : arenas) {
    const Status status = arena->Shrink();
    if (status.ok()) continue;
    TENON_LOG(logger_, kWarning, "the arena of '{}' did not shrink: {}", arena->info().name,
              status.message());
  }
}

Status Session::RunCall(Call& call, const RunOptions& options,
                        std::span<const std::string_view> feed_names, std::span<const Value> feeds,
                        std::span<const std::string_view> fetch_names, std::span<Value> fetches,
                        std::span<const MemoryInfo* const> fetch_memory) {
  for (size_t i = 0; i < feed_names.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const size_t index, FindInput(feed_names[i]));
    if (call.feeds[index].has_value()) {
      return InvalidArgument("input '{}' is given twice", feed_names[i]);
    }
    TENON_RETURN_IF_ERROR(CheckFeed(graph_inputs_[index], feeds[i], call.symbols));
    call.feeds[index] = feeds[i];
  }
  TENON_RETURN_IF_ERROR(CheckNothingMissing(call));
  for (size_t i = 0; i < fetch_names.size(); ++i) {
    TENON_ASSIGN_OR_RETURN(const size_t index, FindOutput(fetch_names[i]));
    call.fetches[index] = fetches[i];
    if (i < fetch_memory.size()) call.fetch_memory[index] = fetch_memory[i];
  }
  TENON_RETURN_IF_ERROR(RunInOrder(options, call.attempt, [&](const RunScope& scope) {
    return RunOrReplay(options, call, scope);
  }));
  for (size_t i = 0; i < fetch_names.size(); ++i) {
    if (!fetches[i].has_value()) fetches[i] = call.fetches[*FindOutput(fetch_names[i])];
  }
  return OkStatus();
}

Status Session::CheckNothingMissing(const Call& call) const {
  std::vector<std::string> missing, given;
  const auto quoted = [&](size_t input) { return Format("'{}'", graph_inputs_[input].name); };
  for (size_t i = 0; i < graph_inputs_.size(); ++i) {
    if (!call.feeds[i].has_value() && is_required_[i]) missing.push_back(quoted(i));
  }
  if (missing.empty()) return OkStatus();
  for (size_t i = 0; i < graph_inputs_.size(); ++i) {
    if (call.feeds[i].has_value()) given.push_back(quoted(i));
  }
  return Fail("Required inputs ([{}]) are missing from input feed ([{}]).", JoinNames(missing),
              JoinNames(given));
}

// The profiler that records a run: the session's, or one that the run asks for. May be null.
Result<std::shared_ptr<Profiler>> Session::ProfilerOf(const RunOptions& options) {
  if (profiler_ && !profiler_->is_over()) {
    if (options.profile_prefix) {
      TENON_LOG(logger_, kWarning, "the session is profiled already; the run gets no file");
    }
    return profiler_;
  }
  if (!options.profile_prefix) return nullptr;
  TENON_ASSIGN_OR_RETURN(auto profiler,
                         Profiler::Open(*options.profile_prefix, options.info.config, logger_));
  for (ExecutionProvider* provider : providers_) {
    if (profiler) AddProfilerOf(*provider, *profiler);
  }
  return profiler;
}

// Beside no other run if a provider cannot overlap runs, and recorded if somebody asked for it.
Status Session::RunInOrder(const RunOptions& options, RunAttempt* attempt, Work work) {
  DeferredLock serial(serial_runs_, defer_lock);
  if (!runs_overlap_) serial.lock();
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<Profiler> profiler, ProfilerOf(options));
  const Status status = RunTraced(options, attempt, profiler.get(), work);
  if (profiler == nullptr) return status;
  profiler->EndRun();
  if (profiler == profiler_) return status;
  const Result<std::string> path = profiler->End();
  if (!path) TENON_LOG(logger_, kError, "profiling: {}", path.error().message());
  return status;
}

Status Session::RunTraced(const RunOptions& options, RunAttempt* attempt, Profiler* profiler,
                          Work work) {
  const uint64_t run_id = profiler ? last_run_id_.fetch_add(1) + 1 : 0;
  RunMeter* const meter = attempt == nullptr ? nullptr : attempt->meter;
  const TraceScope context(profiler, "run", run_id, meter);
  TraceSpan span(profiler, TraceCategory::kSession, "model_run");
  RunScope scope;
  scope.profiler = profiler;
  TENON_ASSIGN_OR_RETURN(scope.dump, NodeDump::OfProcess());
  scope.session_id = id_;
  scope.threads = own_threads_ ? own_threads_.get() : &environment_.threads();
  scope.terminate = options.terminate;
  scope.meter = meter;
  if (attempt != nullptr) {
    scope.failed = &attempt->failed;
    if (attempt->trace_start) span.set_start(*attempt->trace_start);
  }
  if (options.timeout) {
    scope.deadline = std::chrono::steady_clock::now() + *options.timeout;
    scope.timeout = std::chrono::duration_cast<std::chrono::milliseconds>(*options.timeout);
  }
  const Status status = work(scope);
  if (!options.info.tag.empty()) span.AddArg("run_tag", options.info.tag);
  span.AddArg("run_id", std::to_string(run_id));
  span.AddArg("status", status.ok() ? "ok" : std::to_string(static_cast<int>(status.code())));
  if (attempt != nullptr) EndAttempt(status, *attempt, profiler, span);
  return status;
}

Status Session::RunOrReplay(const RunOptions& options, Call& call, const RunScope& scope) {
  int32_t graph_id = -1;
  if (captured_ != nullptr) {
    TENON_ASSIGN_OR_RETURN(graph_id, ConfigInteger(options.info.config, "gpu_graph_id", 0));
  }
  const bool synchronize =
      !ConfigFlag(options.info.config, "disable_synchronize_execution_providers", false);
  const auto run = [&](Frame& frame, std::span<const Value> feeds) {
    return RunBetweenHooks(options, frame, synchronize, [&] {
      return executor_->Run(scope, frame, {feeds, call.fetches, call.fetch_memory});
    });
  };
  if (graph_id != -1) {
    return captured_->Run(graph_id, scope, {call.feeds, call.fetches, call.fetch_memory}, run);
  }
  const FrameLease frame(executor_->frames());
  return run(*frame, call.feeds);
}

Status Session::CheckPart(const RunArguments& run) const {
  if (options_.is_parallel) {
    return InvalidArgument("expected a session with sequential execution mode for a partial run");
  }
  const Plan& plan = executor_->plan();
  SymbolSizes symbols;
  for (size_t i = 0; i < std::min(run.feeds.size(), run.part->feeds.size()); ++i) {
    const auto slot = static_cast<size_t>(run.part->feeds[i]);
    if (slot >= plan.slot_count) continue;  // RunPart says so
    const ValueInfo& info = plan.graph->value(plan.value_of[slot]);
    TENON_RETURN_IF_ERROR(CheckFeed({info.name, info.type}, run.feeds[i], symbols));
  }
  return OkStatus();
}

Status Session::RunPart(const RunOptions& options, Frame& frame, const RunArguments& run) {
  if (!gate_.Enter()) return Fail("the session is being released");
  Status status = CheckPart(run);
  if (status.ok()) {
    RunMeter meter;
    RunAttempt attempt;
    if (options.reports != nullptr) attempt.meter = &meter;
    const auto begin = std::chrono::steady_clock::now();
    status = RunInOrder(options, &attempt, [&](RunScope scope) {
      scope.logger = &logger_;
      return RunBetweenHooks(options, frame, false,
                             [&] { return executor_->Run(scope, frame, run); });
    });
    if (options.reports != nullptr) {
      RunReport report;
      report.run_id = parts_run_.fetch_add(1) + 1;
      report.attempts = 1;
      report.duration = std::chrono::duration_cast<std::chrono::microseconds>(
          std::chrono::steady_clock::now() - begin);
      report.SetMeasured(meter);
      options.reports->Set(std::move(report));
    }
  }
  completed_runs_.fetch_add(status.ok(), std::memory_order_relaxed);
  WatchIdleness();
  gate_.Leave();
  return status;
}

// Executes between the hooks of the providers.
Status Session::RunBetweenHooks(const RunOptions& options, Frame& frame, bool synchronize,
                                FunctionRef<Status()> execute) {
  if (options.stream != nullptr) TENON_RETURN_IF_ERROR(frame.streams().Use(*options.stream));
  RunHooks hooks(providers_, options.info);
  Status first = hooks.Start();
  const auto keep = [&](Status status) {
    if (first.ok()) first = std::move(status);
  };
  if (first.ok()) first = CatchExceptions([&] { return execute(); });
  keep(hooks.End(synchronize));
  keep(frame.streams().EndRun(synchronize));
  return first;
}

Status Session::ReleaseCapturedGraph(int32_t id) {
  if (!gate_.Enter()) return Fail("the session is being released");
  Status status;
  if (captured_ != nullptr) {
    DeferredLock serial(serial_runs_, defer_lock);
    if (!runs_overlap_) serial.lock();
    status = captured_->Release(id);
  }
  gate_.Leave();
  return status;
}

void Session::EndAttempt(const Status& status, RunAttempt& attempt, const Profiler* profiler,
                         TraceSpan& span) const {
  if (attempt.number > 1) span.AddArg("attempts", std::to_string(attempt.number));
  if (attempt.failed.provider < 0) return;
  attempt.failed.provider_name = providers_[static_cast<size_t>(attempt.failed.provider)]->name();
  if (!attempt.may_be_repeated || status.code() != StatusCode::kEpFail) return;
  if (profiler != nullptr) attempt.trace_start = span.start();
  span.Drop();
}

bool Session::HasRunBefore(uint32_t step, const std::set<std::string, std::less<>>& domains) const {
  const std::vector<Step>& steps = executor_->plan().steps;
  const auto is_in = [&](const Step& one) { return domains.contains(one.node->domain); };
  // Of a step with subgraphs that failed, nobody knows how far these came.
  const bool has_subgraphs = step < steps.size() && !steps[step].subgraphs.empty();
  return std::any_of(steps.begin(), steps.begin() + std::min<size_t>(step, steps.size()), is_in) ||
         (has_subgraphs && !domains.empty());
}

Result<std::string> Session::EndProfiling() {
  if (profiler_ == nullptr) return std::string();
  return profiler_->End();
}

}  // namespace tenon
