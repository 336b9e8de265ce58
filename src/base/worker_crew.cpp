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

void PauseSpinning() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() or until `limit` has passed; returns the last done().
template <class Done>
bool SpinUntil(std::chrono::nanoseconds limit, Done done) {
  if (done()) return true;
  if (limit.count() <= 0) return false;
  constexpr int kPausesPerLookAtTheClock = 8;
  const Clock::time_point end = Clock::now() + limit;
  do {
    for (int i = 0; i < kPausesPerLookAtTheClock; ++i) {
      PauseSpinning();
      if (done()) return true;
    }
  } while (Clock::now() < end);
  return done();
}

cpu_set_t ToCpuSet(const std::vector<int>& cpus) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int cpu : cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &set);
  }
  return set;
}

}  // namespace

AnnouncedWork::AnnouncedWork(const WorkCallbacks& callbacks, size_t pieces)
    : callbacks_(callbacks), pieces_(pieces) {
  for (void*& piece : pieces_.span()) piece = callbacks_.Enqueue();
}

AnnouncedWork::~AnnouncedWork() {
  for (size_t i = begun_.load(std::memory_order_relaxed); i < pieces_.size(); ++i) {
    callbacks_.Abandon(pieces_[i]);
  }
}

void* AnnouncedWork::Begin() {
  void* const data = pieces_[begun_.fetch_add(1, std::memory_order_relaxed)];
  callbacks_.Start(data);
  return data;
}

bool LoopSlot::TryAcquire() {
  return !taken_.load(std::memory_order_relaxed) &&
         !taken_.exchange(true, std::memory_order_acquire);
}

void LoopSlot::Open(const Loop& loop, uint32_t chunks) {
  // Release stores: a worker that reads one of them also sees that claim_ has moved on, so the
  // claim that it would make with values of two loops fails.
  chunks_.store(chunks, std::memory_order_release);
  loop_.store(&loop, std::memory_order_release);
  unfinished_.store(chunks, std::memory_order_relaxed);
  const uint64_t generation = claim_.load(std::memory_order_relaxed) >> 32;
  claim_.store(generation << 32, std::memory_order_release);
}

uint32_t LoopSlot::Help(FunctionRef<void(uint32_t)> on_entry) {
  uint64_t seen = claim_.load(std::memory_order_acquire);
  uint32_t chunk;
  uint32_t chunks;
  const Loop* loop;
  do {
    chunk = static_cast<uint32_t>(seen);
    chunks = chunks_.load(std::memory_order_acquire);
    loop = loop_.load(std::memory_order_acquire);
    if (chunk >= chunks) return 0;
  } while (!claim_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire));
  on_entry(chunks - chunk - 1);
  void* const piece = loop->work == nullptr ? nullptr : loop->work->Begin();
  const StopScope stopping(loop->stop);
  const uint32_t done = RunFrom(chunk, chunks, *loop);
  if (loop->work != nullptr) loop->work->End(piece);
  if (loop->stats != nullptr) loop->stats->AddHelp(done);
  // From here on the slot may serve another loop. Waking its caller unnecessarily does no harm.
  const uint32_t before = unfinished_.fetch_sub(done, std::memory_order_acq_rel);
  if (before == (kCallerSleeps | done)) FutexWake(unfinished_, 1);
  return done;
}

void LoopSlot::FinishAndRelease(std::chrono::nanoseconds spin, LoopClock& clock) {
  const uint32_t chunks = chunks_.load(std::memory_order_relaxed);
  const uint32_t first = static_cast<uint32_t>(claim_.fetch_add(1, std::memory_order_relaxed));
  if (first < chunks) {
    const uint32_t done = RunFrom(first, chunks, *loop_.load(std::memory_order_relaxed));
    unfinished_.fetch_sub(done, std::memory_order_acq_rel);
  }
  clock.Lap(&LoopStats::Times::run);
  WaitForOthers(spin);
  clock.Lap(&LoopStats::Times::wait);
  const uint64_t generation = claim_.load(std::memory_order_relaxed) >> 32;
  claim_.store((generation + 1) << 32 | kClosed, std::memory_order_release);
  taken_.store(false, std::memory_order_release);
}

// Runs `chunk`, which is already claimed, and then further chunks. The loop cannot end before the
// caller of this function reports them, so simple increments suffice.
uint32_t LoopSlot::RunFrom(uint32_t chunk, uint32_t chunks, const Loop& loop) {
  uint32_t done = 0;
  while (chunk < chunks) {
    const size_t begin = chunk * loop.grain;
    if (loop.stop == nullptr || !loop.stop->CutsLoop()) {
      loop.body(begin, loop.n - begin > loop.grain ? begin + loop.grain : loop.n);
    }
    ++done;
    chunk = static_cast<uint32_t>(claim_.fetch_add(1, std::memory_order_relaxed));
  }
  return done;
}

void LoopSlot::WaitForOthers(std::chrono::nanoseconds spin) {
  const auto finished = [this] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (SpinUntil(spin, finished)) return;
  uint32_t left = unfinished_.load(std::memory_order_acquire);
  while ((left & ~kCallerSleeps) != 0) {
    if ((left & kCallerSleeps) == 0 &&
        !unfinished_.compare_exchange_weak(left, left | kCallerSleeps, std::memory_order_acquire)) {
      continue;
    }
    FutexWait(unfinished_, left | kCallerSleeps);
    left = unfinished_.load(std::memory_order_acquire);
  }
}

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
    done += slots_[(worker.index + i) % kSlots].Help([&](uint32_t unclaimed) {
      if (just_woken) WakeSleepers(unclaimed);
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
