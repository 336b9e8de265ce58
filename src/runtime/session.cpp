#include "runtime/session.h"

#include <algorithm>
#include <utility>

#include "base/block_pool.h"
#include "base/exception_barrier.h"
#include "base/thread_affinity.h"
#include "base/thread_pool.h"
#include "runtime/build_plan.h"
#include "runtime/config.h"
#include "runtime/dim_names.h"
#include "runtime/environment.h"
#include "runtime/feed_check.h"
#include "runtime/node_dump.h"
#include "runtime/optimize.h"
#include "runtime/profiler.h"
#include "runtime/run_attempt.h"
#include "runtime/run_options.h"
#include "runtime/run_pipeline.h"
#include "runtime/run_report.h"
#include "runtime/traced_allocator.h"
#include "tensor/arena.h"
#include "tensor/lasting_memory.h"

namespace tenon {
namespace {

// How long after its last run a session gives pooled memory back.
constexpr std::chrono::microseconds kIdleTime = std::chrono::seconds(2);

std::atomic<uint32_t> last_session_id = 0;

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
  const StringMap& config = options_.config;
  const auto affinities = config.find(std::string_view("session.intra_op_thread_affinities"));
  if (affinities != config.end() && affinities->second.empty()) {
    return InvalidArgument("{}: Affinity string must not be empty", affinities->first);
  }
  if (!has_own) return OkStatus();
  ThreadPoolOptions threads;
  threads.threads = options_.intra_op_threads;
  threads.callbacks = options_.thread_callbacks;
  threads.work = options_.work_callbacks;
  TENON_ASSIGN_OR_RETURN(
      threads.spin, ConfigMicroseconds(config, "session.intra_op.spin_duration_us", threads.spin));
  if (!ConfigFlag(config, "session.intra_op.allow_spinning", true)) {
    threads.spin = std::chrono::microseconds(0);
  }
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
  FixFreeDimensions(*model_.graph, options_);
  interface_.Describe(*model_.graph, options_.equal_names_are_equal_sizes);
  ForgetDimNames(*model_.graph,
                 options_.equal_names_are_equal_sizes ? DimNames::kPlaceholders : DimNames::kAll);
  const bool may_fall_back = !ConfigFlag(options_.config, "session.disable_cpu_ep_fallback", false);
  if (!may_fall_back && !parts_.is_last_implicit) {
    return InvalidArgument(
        "session.disable_cpu_ep_fallback is 1, but {} was added to the session explicitly",
        providers_.back()->name());
  }
  return OptimizeAndPlan();
}

// Calls all providers and returns the first failure.
Status Session::TellInitialized() {
  const TraceScope context(profiler_.get(), "init");
  Status first;
  for (ExecutionProvider* provider : providers_) {
    Status status = CatchExceptions([&] { return provider->OnSessionInitialized(); });
    if (first.ok()) first = std::move(status);
  }
  return first;
}

Status Session::OptimizeAndPlan() {
  ThreadPool& threads = own_threads_ ? *own_threads_ : environment_.threads();
  if (!parts_.shared_weights) parts_.shared_weights = environment_.shared_weights();
  TENON_RETURN_IF_ERROR(OptimizeModel(model_, options_, parts_,
                                      {threads, logger_, assignment_, parts_.shared_weights}));
  interface_.RefineOutputs(*model_.graph);
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
  const bool is_clients = parts_.memory != nullptr;
  std::shared_ptr<Allocator> work_memory;
  if (!is_clients && ConfigFlag(options_.config, "tenon.shares_memory", false)) {
    parts_.memory = environment_.shared_memory();
    work_memory = traced(environment_.shared_work_memory(), host, MemoryEvents::kAll, false);
  }
  std::shared_ptr<Allocator> pool = parts_.memory;
  if (!pool) {
    pool = std::make_shared<CachingArena>(
        traced(SharedWorkMemory(), host, MemoryEvents::kDevice, true), limit);
  }
  TENON_ASSIGN_OR_RETURN(
      const size_t memory_plans,
      ConfigCount(options_.config, "tenon.mem_pattern_cache_size", options_.plans_memory ? 64 : 0));
  TENON_ASSIGN_OR_RETURN(const std::chrono::microseconds idle_time,
                         ConfigMicroseconds(options_.config, "tenon.idle_trim_us", kIdleTime));
  TENON_ASSIGN_OR_RETURN(WeightPolicy weights,
                         MakeWeightPolicy(options_.config, parts_.shared_weights, logger_));
  const Result<NodeDump*> dump = NodeDump::OfProcess();  // its error is reported by runs
  const PlanParts plan_parts{providers_,
                             memories_,
                             traced(std::move(pool), host, MemoryEvents::kAll, false),
                             &transfers_,
                             std::move(weights),
                             parts_.failed,
                             memory_plans,
                             !parts_.memory,
                             !is_clients,
                             dump && *dump != nullptr && (*dump)->settings().shows_values(),
                             std::move(work_memory),
                             profiler_.get(),
                             options_.progress};
  TraceSpan planning(profiler_.get(), TraceCategory::kSession, "planning");
  TENON_ASSIGN_OR_RETURN(Plan plan, BuildPlan(*model_.graph, plan_parts));
  planning.AddArg("steps", std::to_string(plan.steps.size()));
  TENON_LOG(logger_, kInfo, "graph '{}' runs in {} steps", model_.graph->name, plan.steps.size());
  TENON_ASSIGN_OR_RETURN(
      pipeline_, RunPipeline::Make(std::move(plan), {providers_, runs_overlap_, threads, logger_,
                                                     profiler_, id_, idle_time}));
  return OkStatus();
}

Status Session::Run(const RunOptions& options, std::span<const std::string_view> feed_names,
                    std::span<const Value> feeds, std::span<const std::string_view> fetch_names,
                    std::span<Value> fetches, std::span<const MemoryInfo* const> fetch_memory,
                    RunAttempt* attempt) {
  RunAttempt only;
  if (attempt == nullptr) attempt = &only;
  PooledVector<Value> reordered;
  FeedCheck check(inputs().size() == 1);
  Result<std::span<const Value>> ordered =
      interface_.OrderFeeds(feed_names, feeds, reordered, check);
  attempt->has_unequal_names = check.has_unequal_names();
  if (!ordered) return std::move(ordered.error());
  PooledVector<size_t> places(fetch_names.size());
  TENON_RETURN_IF_ERROR(interface_.FindOutputs(fetch_names, places));
  RunArguments run{*ordered, fetches, fetch_memory};
  if (ordered->data() == options.given.data()) run.given = options.given;
  if (AreAllNew(places, fetches)) {
    Status status = pipeline_->Run(options, run, *attempt);
    if (!status.ok()) std::fill(fetches.begin(), fetches.end(), Value());
    return status;
  }
  PooledVector<Value> made(outputs().size());
  PooledVector<const MemoryInfo*> memory(outputs().size());
  for (size_t i = 0; i < fetch_names.size(); ++i) {
    made[places[i]] = fetches[i];
    if (i < fetch_memory.size()) memory[places[i]] = fetch_memory[i];
  }
  run.fetches = made;
  run.fetch_memory = memory;
  TENON_RETURN_IF_ERROR(pipeline_->Run(options, run, *attempt));
  for (size_t i = 0; i < fetch_names.size(); ++i) {
    if (!fetches[i].has_value()) fetches[i] = made[places[i]];
  }
  return OkStatus();
}

// Whether the fetches are all outputs, in their order, and values that the run makes.
bool Session::AreAllNew(std::span<const size_t> places, std::span<const Value> fetches) const {
  if (places.size() != outputs().size()) return false;
  for (size_t i = 0; i < places.size(); ++i) {
    if (places[i] != i || fetches[i].has_value()) return false;
  }
  return true;
}

Executor& Session::executor() { return pipeline_->executor(); }

Status Session::CheckPart(const RunArguments& run) const {
  if (options_.is_parallel) {
    return InvalidArgument("expected a session with sequential execution mode for a partial run");
  }
  const Plan& plan = pipeline_->plan();
  FeedCheck check(inputs().size() == 1);
  SymbolNumbers symbols;
  for (size_t i = 0; i < std::min(run.feeds.size(), run.part->feeds.size()); ++i) {
    const auto slot = static_cast<size_t>(run.part->feeds[i]);
    if (slot >= plan.slot_count) continue;  // the run reports the error
    const ValueInfo& info = plan.graph->value(plan.value_of[slot]);
    TENON_RETURN_IF_ERROR(check.Check(info.name, info.type, symbols.Of(info.type), run.feeds[i]));
  }
  return OkStatus();
}

Status Session::RunPart(const RunOptions& options, Frame& frame, const RunArguments& run,
                        std::vector<Placement>* placements) {
  TENON_RETURN_IF_ERROR(CheckPart(run));
  RunAttempt attempt;
  if (options.reports == nullptr && placements == nullptr) {
    return pipeline_->Run(options, run, attempt, &frame);
  }
  RunMeter meter;
  meter.set_placements(placements);
  attempt.meter = &meter;
  const auto begin = std::chrono::steady_clock::now();
  Status status = pipeline_->Run(options, run, attempt, &frame);
  if (placements != nullptr && status.ok()) LogMemory(meter);
  if (options.reports == nullptr) return status;
  RunReport report;
  report.run_id = parts_run_.fetch_add(1) + 1;
  report.attempts = 1;
  report.duration = std::chrono::duration_cast<std::chrono::microseconds>(
      std::chrono::steady_clock::now() - begin);
  report.SetMeasured(meter);
  options.reports->Set(std::move(report));
  return status;
}

void Session::LogMemory(const RunMeter& meter) const {
  for (const RunMeter::Location& place : meter.locations()) {
    const std::string name = Format("{}:{}", place.name, place.device_id);
    TENON_LOG(logger(), kInfo, "[Memory] ExecutionFrame statically allocates {} bytes for {}",
              place.static_bytes, name);
    TENON_LOG(logger(), kInfo, "[Memory] ExecutionFrame dynamically allocates {} bytes for {}",
              place.dynamic_bytes, name);
  }
}

Status Session::ReleaseCapturedGraph(int32_t id) { return pipeline_->ReleaseCaptured(id); }

bool Session::HasRunBefore(uint32_t step, const std::set<std::string, std::less<>>& domains) const {
  const std::vector<Step>& steps = pipeline_->plan().steps;
  const auto is_in = [&](const Step& one) { return domains.contains(one.node->domain); };
  // If a step with subgraphs failed, it is unknown which of their nodes have run.
  const bool has_subgraphs = step < steps.size() && !steps[step].subgraphs.empty();
  return std::any_of(steps.begin(), steps.begin() + std::min<size_t>(step, steps.size()), is_in) ||
         (has_subgraphs && !domains.empty());
}

Result<std::string> Session::EndProfiling() {
  if (profiler_ == nullptr) return std::string();
  return profiler_->End();
}

}  // namespace tenon
