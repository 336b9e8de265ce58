#include "runtime/profiler.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "base/exception_barrier.h"
#include "base/thread_id.h"
#include "runtime/config.h"
#include "runtime/node_events.h"

namespace tenon {
namespace {

constexpr size_t kShards = 16;

int64_t NanosecondsOfEpoch() {
  using std::chrono::duration_cast, std::chrono::nanoseconds, std::chrono::system_clock;
  return duration_cast<nanoseconds>(system_clock::now().time_since_epoch()).count();
}

thread_local TraceContext* current_context = nullptr;

}  // namespace

// Events of a few threads.
struct Profiler::Shard {
  Mutex mutex;
  std::vector<TraceEvent> events;
  std::vector<NodeTrace> nodes;
};

Profiler::Profiler(std::optional<TraceFile> file, const Logger& logger)
    : start_of_epoch_(NanosecondsOfEpoch()),
      logger_(logger),
      file_(std::move(file)),
      shards_(new Shard[kShards]) {}

Profiler::~Profiler() {
  (void)HasMemoryFor([this] {
    const Result<std::string> path = End();
    if (!path) TENON_LOG(logger_, kError, "profiling: {}", path.error().message());
  });
}

Result<std::shared_ptr<Profiler>> Profiler::Open(const std::string& prefix, const StringMap& config,
                                                 const Logger& logger) {
  TENON_ASSIGN_OR_RETURN(const size_t most_events,
                         ConfigCount(config, "tenon.profiling.max_events", 1'000'000));
  TENON_ASSIGN_OR_RETURN(const size_t level,
                         ConfigCount(config, "tenon.profiling.memory_events", 1));
  if (level > 2) {
    return InvalidArgument(
        "config entry 'tenon.profiling.memory_events': expected 0, 1 or 2, got '{}'", level);
  }
  Result<TraceFile> file = TraceFile::Create(prefix);
  if (!file) {
    TENON_LOG(logger, kWarning, "profiling is off: {}", file.error().message());
    return nullptr;
  }
  std::shared_ptr<Profiler> profiler(new Profiler(std::move(*file), logger));
  profiler->most_events_ = most_events == 0 ? SIZE_MAX : most_events;
  profiler->memory_events_ = static_cast<MemoryEvents>(level);
  profiler->has_memory_counters_ = ConfigFlag(config, "tenon.profiling.memory_counters", false);
  profiler->is_streaming_ = ConfigFlag(config, "tenon.profiling.streaming", false);
  return profiler;
}

std::shared_ptr<Profiler> Profiler::ToSink(std::function<void(const TraceEvent&)> sink,
                                           const Logger& logger) {
  std::shared_ptr<Profiler> profiler(new Profiler(std::nullopt, logger));
  profiler->sink_ = std::move(sink);
  profiler->is_streaming_ = true;
  return profiler;
}

int64_t Profiler::Now() const {
  using std::chrono::duration_cast, std::chrono::microseconds;
  return duration_cast<microseconds>(std::chrono::steady_clock::now() - start_).count();
}

Profiler::Shard& Profiler::ShardOfThread() {
  return shards_[static_cast<size_t>(ThreadId()) % kShards];
}

// Whether so many more events fit. The first event that does not fit is reported in the log.
bool Profiler::TakeRoom(size_t events) {
  if (is_over_.load(std::memory_order_relaxed)) return false;
  if (events_.fetch_add(events, std::memory_order_relaxed) + events <= most_events_) return true;
  if (dropped_.fetch_add(events, std::memory_order_relaxed) == 0) {
    TENON_LOG(logger_, kError, "profiling: more than {} events; the others are dropped",
              most_events_);
  }
  return false;
}

void Profiler::Add(TraceEvent event) {
  if (!TakeRoom(1)) return;
  if (event.thread == 0) event.thread = ThreadId();
  if (event.process == 0) event.process = getpid();
  if (!HasMemoryFor([&] { Keep(std::move(event)); })) dropped_.fetch_add(1);
}

void Profiler::Keep(TraceEvent event) {
  if (is_streaming_) return Deliver(event);
  Shard& shard = ShardOfThread();
  const MutexLock lock(shard.mutex);
  shard.events.push_back(std::move(event));
}

void Profiler::Add(NodeTrace trace) {
  if (!TakeRoom(kEventsPerNode)) return;
  trace.thread = ThreadId();
  if (!HasMemoryFor([&] { Keep(std::move(trace)); })) dropped_.fetch_add(kEventsPerNode);
}

void Profiler::Keep(NodeTrace trace) {
  if (is_streaming_) {
    std::vector<TraceEvent> events;
    AppendNodeEvents(trace, getpid(), events);
    for (const TraceEvent& event : events) Deliver(event);
    return;
  }
  Shard& shard = ShardOfThread();
  const MutexLock lock(shard.mutex);
  shard.nodes.push_back(std::move(trace));
}

void Profiler::Deliver(const TraceEvent& event) {
  const MutexLock lock(mutex_);
  if (sink_) return sink_(event);
  if (!file_) return;
  file_->Write(TraceLine(event));
  const auto now = std::chrono::steady_clock::now();
  if (now - last_flush_ < std::chrono::seconds(1)) return;
  last_flush_ = now;
  file_->Flush();
}

void Profiler::EndRun() {
  const MutexLock lock(mutex_);
  if (is_streaming_ && file_) file_->Flush();
}

const TracedNode* Profiler::Describe(const void* step,
                                     const std::function<TracedNode()>& describe) {
  const MutexLock lock(mutex_);
  std::unique_ptr<TracedNode>& node = nodes_[step];
  if (node == nullptr) node = std::make_unique<TracedNode>(describe());
  return node.get();
}

void Profiler::AddProvider(std::string name, std::unique_ptr<ProviderProfiler> provider,
                           const void* session) {
  const Status status = provider->Start(std::chrono::steady_clock::now() - start_);
  if (!status.ok()) {
    TENON_LOG(logger_, kError, "{} could not start profiling: {}", name, status.message());
    return;
  }
  const MutexLock lock(mutex_);
  providers_.push_back({std::move(name), std::move(provider), session});
  has_providers_ = true;
}

void Profiler::StartEvent(int64_t start) {
  const MutexLock lock(mutex_);
  for (const NamedProvider& provider : providers_) {
    const Status status = provider.profiler->StartEvent(OfEpoch(start));
    if (!status.ok()) {
      TENON_LOG(logger_, kError, "{} failed at the start of an event: {}", provider.name,
                status.message());
    }
  }
}

void Profiler::StopEvent(const TraceEvent& event) {
  const MutexLock lock(mutex_);
  for (const NamedProvider& provider : providers_) {
    const Status status = provider.profiler->StopEvent(OfEpoch(event.start), event);
    if (!status.ok()) {
      TENON_LOG(logger_, kError, "{} failed at the end of an event: {}", provider.name,
                status.message());
    }
  }
}

std::optional<Profiler::NamedProvider> Profiler::TakeProvider(const void* session,
                                                              bool providers_live) {
  const MutexLock lock(mutex_);
  const auto found =
      std::find_if(providers_.begin(), providers_.end(), [&](const NamedProvider& one) {
        if (providers_live && one.profiler->outlives_provider()) return false;
        return session == nullptr || one.session == session;
      });
  if (found == providers_.end()) return std::nullopt;
  std::optional<NamedProvider> taken(std::move(*found));
  providers_.erase(found);
  has_providers_ = !providers_.empty();
  return taken;
}

void Profiler::EndProvider(NamedProvider& provider) {
  std::vector<TraceEvent> events;
  const Status status = provider.profiler->End(events);
  if (!status.ok()) {
    TENON_LOG(logger_, kError, "{} could not end profiling: {}", provider.name, status.message());
    return;
  }
  for (TraceEvent& event : events) Add(std::move(event));
}

void Profiler::EndProviders(const void* session, bool providers_live) {
  while (std::optional<NamedProvider> provider = TakeProvider(session, providers_live)) {
    (void)HasMemoryFor([&] { EndProvider(*provider); });
  }
}

std::vector<TraceEvent> Profiler::CollectSorted() {
  std::vector<TraceEvent> events;
  for (size_t i = 0; i < kShards; ++i) {
    const MutexLock lock(shards_[i].mutex);
    for (const NodeTrace& trace : shards_[i].nodes) AppendNodeEvents(trace, getpid(), events);
    std::move(shards_[i].events.begin(), shards_[i].events.end(), std::back_inserter(events));
    shards_[i].nodes.clear();
    shards_[i].events.clear();
  }
  std::stable_sort(events.begin(), events.end(),
                   [](const TraceEvent& a, const TraceEvent& b) { return a.start < b.start; });
  return events;
}

Result<std::string> Profiler::End() {
  EndProviders();
  if (is_over_.exchange(true)) return std::string();
  std::vector<TraceEvent> events = CollectSorted();
  if (const size_t dropped = dropped_.load(); dropped > 0) {
    TraceEvent& last = events.emplace_back();
    last.name = "events_dropped";
    last.start = Now();
    last.process = getpid();
    last.thread = ThreadId();
    last.args = {{"count", std::to_string(dropped)}};
  }
  const MutexLock lock(mutex_);
  if (sink_) {
    for (const TraceEvent& event : events) sink_(event);
  }
  if (!file_) return std::string();
  for (const TraceEvent& event : events) file_->Write(TraceLine(event));
  const std::string path = file_->path();
  TENON_RETURN_IF_ERROR(file_->Close());
  file_.reset();
  return path;
}

TraceSpan::TraceSpan(Profiler* profiler, TraceCategory category, std::string_view name,
                     bool outlives_providers)
    : profiler_(profiler) {
  if (profiler_ == nullptr) return;
  event_.category = category;
  event_.start = profiler_->Now();
  is_dropped_ = !HasMemoryFor([&] { event_.name = name; });
  if (is_dropped_ || outlives_providers || !profiler_->has_providers()) return;
  is_told_ = HasMemoryFor([this] { profiler_->StartEvent(event_.start); });
}

TraceSpan::~TraceSpan() {
  if (profiler_ == nullptr) return;
  event_.duration = profiler_->Now() - event_.start;
  (void)HasMemoryFor([this] {
    if (is_told_) profiler_->StopEvent(event_);
    if (!is_dropped_) profiler_->Add(std::move(event_));
  });
}

void TraceSpan::AddArg(std::string_view key, std::string_view value) {
  if (profiler_ == nullptr) return;
  (void)HasMemoryFor([&] { event_.args.push_back({std::string(key), std::string(value)}); });
}

TraceContext* TraceContext::Current() { return current_context; }

Profiler* TraceContext::CurrentProfiler() {
  return current_context == nullptr ? nullptr : current_context->profiler;
}

TraceScope::TraceScope(Profiler* profiler, const char* phase, uint64_t run_id, RunMeter* meter) {
  if (profiler == nullptr && meter == nullptr) return;
  is_set_ = true;
  context_ = {profiler, phase, nullptr, run_id, meter};
  previous_ = current_context;
  current_context = &context_;
}

TraceScope::~TraceScope() {
  if (is_set_) current_context = previous_;
}

}  // namespace tenon
