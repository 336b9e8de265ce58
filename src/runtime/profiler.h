// Records what a session or one run does, and writes it as a trace.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/logging.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/string_map.h"
#include "runtime/node_trace.h"
#include "runtime/trace_event.h"
#include "runtime/trace_file.h"

namespace tenon {

class RunMeter;

// Reports a provider's device events to one profiler. Its methods are called by the threads that
// run.
class ProviderProfiler {
 public:
  virtual ~ProviderProfiler() = default;
  // Whether it may be used after its provider is gone, and is to see how that goes.
  virtual bool outlives_provider() const { return false; }
  // `offset` is the time since the profiling start.
  virtual Status Start(std::chrono::nanoseconds offset) = 0;
  // Called around every event of a node or a session: in pairs, nested within a thread. `id` is the
  // absolute time of the event's start in microseconds since the epoch.
  virtual Status StartEvent(uint64_t id) { return (void)id, OkStatus(); }
  virtual Status StopEvent(uint64_t id, const TraceEvent& event) {
    return (void)id, (void)event, OkStatus();
  }
  // Called once, at the end: adds the device's events, with times since the profiling start.
  virtual Status End(std::vector<TraceEvent>& events) = 0;
};

// Which actions of allocators are recorded (tenon.profiling.memory_events).
enum class MemoryEvents : uint8_t { kNone = 0, kDevice = 1, kAll = 2 };

// Thread-safe. Events that come after End are dropped.
class Profiler {
 public:
  // A profiler whose file <prefix>_<time>.json exists already. Null, with a warning in the log, if
  // the file cannot be made. Config: tenon.profiling.max_events (0: no limit), .memory_events,
  // .memory_counters, .streaming. Error: kInvalidArgument for a bad value of one of these.
  static Result<std::shared_ptr<Profiler>> Open(const std::string& prefix, const StringMap& config,
                                                const Logger& logger);
  // Events go to `sink` as they end; no file is made.
  static std::shared_ptr<Profiler> ToSink(std::function<void(const TraceEvent&)> sink,
                                          const Logger& logger);
  ~Profiler();
  Profiler(const Profiler&) = delete;
  Profiler& operator=(const Profiler&) = delete;

  // The profiling start, in nanoseconds since 1970 (UTC).
  int64_t start_ns() const { return start_of_epoch_; }
  // Microseconds since the profiling start.
  int64_t Now() const;
  MemoryEvents memory_events() const { return memory_events_; }
  bool has_memory_counters() const { return has_memory_counters_; }

  // Fills in the event's thread and process where they are 0. An event for which there is no memory
  // counts as dropped.
  void Add(TraceEvent event);
  void Add(NodeTrace trace);
  // The node's description; `describe` makes it at the first call. Lives as long as this object.
  const TracedNode* Describe(const void* step, const std::function<TracedNode()>& describe);

  // Starts the provider's profiler and keeps it. One that fails to start is dropped, with an error
  // in the log. EndProviders(session) ends it alone.
  void AddProvider(std::string name, std::unique_ptr<ProviderProfiler> provider,
                   const void* session = nullptr);
  bool has_providers() const { return has_providers_.load(std::memory_order_relaxed); }
  // Tells the providers' profilers that an event starts, or ends, on this thread.
  void StartEvent(int64_t start);
  void StopEvent(const TraceEvent& event);
  // Takes the events of all providers' profilers, or of one session's, and frees these. With
  // `providers_live`, those that outlive their providers stay. Idempotent.
  void EndProviders(const void* session = nullptr, bool providers_live = false);
  // Called after a run: writes the events that streaming has held back.
  void EndRun();

  bool is_over() const { return is_over_.load(std::memory_order_relaxed); }
  // Writes and closes the file. Returns its path; "" if it was closed before or there is no file.
  // Error: kFail if it could not be written.
  Result<std::string> End();

 private:
  struct Shard;
  struct NamedProvider {
    std::string name;
    std::unique_ptr<ProviderProfiler> profiler;
    const void* session;
  };

  Profiler(std::optional<TraceFile> file, const Logger& logger);
  Shard& ShardOfThread();
  bool TakeRoom(size_t events);
  void Keep(TraceEvent event);
  void Keep(NodeTrace trace);
  void Deliver(const TraceEvent& event);
  // Removes the first provider of `session` (null: of any) from the list.
  std::optional<NamedProvider> TakeProvider(const void* session, bool providers_live);
  void EndProvider(NamedProvider& provider);
  std::vector<TraceEvent> CollectSorted();

  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  // In microseconds, of those since the profiling start.
  uint64_t OfEpoch(int64_t since_start) const {
    return static_cast<uint64_t>(start_of_epoch_ / 1000 + since_start);
  }

  const int64_t start_of_epoch_;  // nanoseconds
  const Logger& logger_;
  std::optional<TraceFile> file_;
  std::function<void(const TraceEvent&)> sink_;
  size_t most_events_ = 1'000'000;
  MemoryEvents memory_events_ = MemoryEvents::kDevice;
  bool has_memory_counters_ = false;
  bool is_streaming_ = false;

  std::unique_ptr<Shard[]> shards_;
  std::atomic<size_t> events_ = 0;
  std::atomic<size_t> dropped_ = 0;
  std::atomic<bool> is_over_ = false;
  std::atomic<bool> has_providers_ = false;
  Mutex mutex_;  // file, sink, nodes, providers
  std::chrono::steady_clock::time_point last_flush_ = start_;
  std::unordered_map<const void*, std::unique_ptr<TracedNode>> nodes_;
  std::vector<NamedProvider> providers_;
};

// Records the time from its construction to its destruction as an event; does nothing if
// `profiler` is null.
class TraceSpan {
 public:
  // The providers' profilers learn of its start and end, unless it `outlives_providers`. Without
  // memory for it, the event is left out.
  TraceSpan(Profiler* profiler, TraceCategory category, std::string_view name,
            bool outlives_providers = false);
  ~TraceSpan();
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;
  // Without memory for it, the argument is left out.
  void AddArg(std::string_view key, std::string_view value);
  // When it began, in microseconds since the profiling start; may be set to an earlier time.
  int64_t start() const { return event_.start; }
  void set_start(int64_t start) { event_.start = start; }
  // Makes the destructor record nothing.
  void Drop() { is_dropped_ = true; }

 private:
  Profiler* const profiler_;
  TraceEvent event_;
  bool is_told_ = false;
  bool is_dropped_ = false;
};

// What the calling thread is doing, for the events of allocators.
struct TraceContext {
  Profiler* profiler = nullptr;
  const char* phase = "idle";  // load, init, run, idle, teardown
  const std::string* node = nullptr;
  uint64_t run_id = 0;
  RunMeter* meter = nullptr;

  // The context of this thread; null outside any session's work.
  static TraceContext* Current();
  // Its profiler; null if there is none.
  static Profiler* CurrentProfiler();
};

// Sets the thread's context for its lifetime. Costs nothing if `profiler` and `meter` are null.
class TraceScope {
 public:
  TraceScope(Profiler* profiler, const char* phase, uint64_t run_id = 0, RunMeter* meter = nullptr);
  ~TraceScope();
  TraceScope(const TraceScope&) = delete;
  TraceScope& operator=(const TraceScope&) = delete;

 private:
  TraceContext context_;
  TraceContext* previous_ = nullptr;
  bool is_set_ = false;
};

}  // namespace tenon
