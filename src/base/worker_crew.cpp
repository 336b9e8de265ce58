#include "base/worker_crew.h"

#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <exception>
#include <optional>

#include "base/denormals.h"
#include "base/exception_barrier.h"
#include "base/fork.h"
#include "base/futex.h"

namespace tenon {
namespace {

using Clock = std::chrono::steady_clock;

thread_local bool inside_loop = false;

// A thread wakes at most this many sleepers itself; those that it woke wake the next, so that the
// system calls for a large crew are made by many threads.
constexpr uint32_t kWakeFanOut = 4;

cpu_set_t ToCpuSet(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  return set;
}

}  // namespace

WorkerCrew::WorkerCrew(const ThreadPoolOptions& options, int workers)
    : options_(options), generation_(ForkGeneration()), workers_(static_cast<size_t>(workers)) {
  for (size_t i = 0; i < workers_.size(); ++i) {
    workers_[i].crew = this;
    workers_[i].index = static_cast<uint32_t>(i);
  }
}

WorkerCrew::~WorkerCrew() {
  stopping_.store(true, std::memory_order_release);
  news_.fetch_add(1, std::memory_order_seq_cst);
  FutexWake(news_, UINT32_MAX);
  for (Worker& worker : workers_) {
    if (worker.thread.joinable()) worker.thread.join();
    if (worker.client_thread) options_.callbacks.join(worker.client_thread);
  }
}

bool WorkerCrew::BelongsToThisProcess() const { return generation_ == ForkGeneration(); }

bool WorkerCrew::InsideLoop() { return inside_loop; }

Status WorkerCrew::Start() {
  std::call_once(start_once_, [this] {
    start_status_ = StartWorkers();
    started_.store(true, std::memory_order_release);
  });
  return start_status_;
}

Status WorkerCrew::StartWorkers() {
  TENON_RETURN_IF_ERROR(CheckAffinities());
  for (Worker& worker : workers_) TENON_RETURN_IF_ERROR(StartWorker(worker));
  return OkStatus();
}

Status WorkerCrew::CheckAffinities() const {
  if (options_.affinities.size() > workers_.size()) {
    return InvalidArgument("thread pool '{}': {} affinity sets for {} workers", options_.name,
                           options_.affinities.size(), workers_.size());
  }
  cpu_set_t usable;
  if (sched_getaffinity(0, sizeof(usable), &usable) != 0) return OkStatus();
  for (size_t i = 0; i < options_.affinities.size(); ++i) {
    if (options_.affinities[i].empty()) continue;
    cpu_set_t set = ToCpuSet(options_.affinities[i]);
    CPU_AND(&set, &set, &usable);
    if (CPU_COUNT(&set) == 0) {
      return InvalidArgument("thread pool '{}': affinity set {} holds no CPU that may be used",
                             options_.name, i);
    }
  }
  return OkStatus();
}

Status WorkerCrew::StartWorker(Worker& worker) {
  void (*const entry)(void*) = [](void* param) {
    const Worker& self = *static_cast<const Worker*>(param);
    self.crew->Prepare(self);
    self.crew->WorkUntilStopped(self);
  };
  // std::thread throws, and a client's function may.
  try {
    if (options_.callbacks.create) {
      worker.client_thread = options_.callbacks.create(options_.callbacks.options, entry, &worker);
      if (worker.client_thread) return OkStatus();
      return Fail(
          "thread pool '{}': the custom thread creation function returned no handle for "
          "worker {}",
          options_.name, worker.index);
    }
    worker.thread = std::thread(entry, &worker);
    return OkStatus();
  } catch (const std::exception& error) {
    return Fail("thread pool '{}': worker {} could not be started: {}", options_.name, worker.index,
                error.what());
  } catch (...) {
    return Fail("thread pool '{}': worker {} could not be started", options_.name, worker.index);
  }
}

void WorkerCrew::Prepare(const Worker& worker) const {
  constexpr size_t kLongestName = 15;
  char name[kLongestName + 1];  // no memory is needed here, which there may not be
  *fmt::format_to_n(name, kLongestName, "{}-{}", options_.name, worker.index + 1).out = '\0';
  pthread_setname_np(pthread_self(), name);
  if (worker.index < options_.affinities.size() && !options_.affinities[worker.index].empty()) {
    const cpu_set_t set = ToCpuSet(options_.affinities[worker.index]);
    sched_setaffinity(0, sizeof(set), &set);
  }
  if (options_.denormals_as_zero) SetDenormalsAsZero(true);
  inside_loop = true;  // a worker runs nothing but loop bodies
}

void WorkerCrew::WorkUntilStopped(const Worker& worker) {
  SpinBudget budget(options_.spin);
  bool just_woken = false;
  for (;;) {
    // Read before everything else: any later announcement ends the wait below.
    const uint32_t seen = news_.load(std::memory_order_acquire);
    if (stopping_.load(std::memory_order_acquire)) return;
    if (HelpAny(worker, just_woken)) {
      just_woken = false;
    } else {
      just_woken = WaitForNews(seen, budget);
    }
  }
}

// Helps with every loop that has chunks left. Workers start at different slots, so that several
// callers all get help.
bool WorkerCrew::HelpAny(const Worker& worker, bool just_woken) {
  uint32_t done = 0;
  for (uint32_t i = 0; i < kSlots; ++i) {
    LoopSlot& slot = slots_[(worker.index + i) % kSlots];
    done += slot.Help(worker.index + 1, [&] {
      if (just_woken) WakeSleepers(slot.Unclaimed());
    });
  }
  return done > 0;
}

// Returns when news_ differs from `seen`; true if the thread slept.
bool WorkerCrew::WaitForNews(uint32_t seen, SpinBudget& budget) {
  const auto arrived = [&] { return news_.load(std::memory_order_acquire) != seen; };
  const Clock::time_point start = Clock::now();
  spinning_.fetch_add(1, std::memory_order_relaxed);
  if (SpinUntil(budget.now(), arrived)) {
    spinning_.fetch_sub(1, std::memory_order_relaxed);
    budget.Learn(Clock::now() - start);
    return false;
  }
  // Announced before the last read of news_, just as Run reads sleeping_ after changing news_: one
  // of the two sees the other.
  sleeping_.fetch_add(1, std::memory_order_seq_cst);
  spinning_.fetch_sub(1, std::memory_order_relaxed);
  while (news_.load(std::memory_order_seq_cst) == seen) FutexWait(news_, seen);
  sleeping_.fetch_sub(1, std::memory_order_relaxed);
  // The time that waking takes does not show how soon the work came.
  const Clock::time_point woken(Clock::duration(woken_at_.load(std::memory_order_relaxed)));
  budget.Learn((woken > start ? woken : Clock::now()) - start);
  return true;
}

// Wakes sleepers for `wanted` chunks, less the threads that spin and so need no waking.
void WorkerCrew::WakeSleepers(uint32_t wanted) {
  const uint32_t sleeping = sleeping_.load(std::memory_order_seq_cst);
  const uint32_t spinning = spinning_.load(std::memory_order_relaxed);
  if (sleeping == 0 || wanted <= spinning) return;
  woken_at_.store(Clock::now().time_since_epoch().count(), std::memory_order_relaxed);
  FutexWake(news_, std::min({wanted - spinning, sleeping, kWakeFanOut}));
}

bool WorkerCrew::Run(const LoopSlot::Loop& loop, size_t chunks) noexcept {
  if (chunks > LoopSlot::kMaxChunks) return false;
  if (!started_.load(std::memory_order_acquire) && !HasMemoryFor([this] { (void)Start(); })) {
    return false;
  }
  LoopClock clock(loop.stats);
  std::optional<AnnouncedWork> work;
  LoopSlot::Loop announced = loop;
  if (options_.work.are_set()) {
    // A worker that helps takes a chunk at least, and helps with a loop once.
    const size_t pieces = std::min(chunks, workers_.size());
    if (!HasMemoryFor([&] { work.emplace(options_.work, pieces); })) return false;
    announced.work = &*work;
  }
  const auto slot = std::find_if(slots_.begin(), slots_.end(),
                                 [](LoopSlot& candidate) { return candidate.TryAcquire(); });
  if (slot == slots_.end()) return false;
  RunIn(*slot, announced, static_cast<uint32_t>(chunks), clock);
  if (loop.stats != nullptr) {
    loop.stats->AddBlockSize(loop.grain);
    clock.Lap(&LoopStats::Times::revoke);
  }
  return true;
}

void WorkerCrew::RunIn(LoopSlot& slot, const LoopSlot::Loop& loop, uint32_t chunks,
                       LoopClock& clock) {
  slot.Open(loop, chunks);
  clock.Lap(&LoopStats::Times::distribution);
  news_.fetch_add(1, std::memory_order_seq_cst);
  WakeSleepers(chunks - 1);
  clock.Lap(&LoopStats::Times::enqueue);
  inside_loop = true;
  slot.FinishAndRelease(options_.spin, clock);
  inside_loop = false;
}

}  // namespace tenon
