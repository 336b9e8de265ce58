// ThreadPool on threads that the host starts.
#include <algorithm>
#include <atomic>

#include "base/futex.h"
#include "base/hosted_threads.h"
#include "base/loop_slot.h"
#include "base/loop_stats.h"
#include "base/spin.h"
#include "base/thread_pool.h"

namespace tenon {
namespace {

thread_local constinit bool inside_loop = false;

// One loop at a time is divided: a host has one thread that runs sessions.
struct Crew {
  std::atomic<uint32_t> workers = 0;
  std::atomic<bool> is_stopping = false;
  std::atomic<uint32_t> helpers = 0;  // workers from this index on leave the loop alone
  // Advances whenever there is something new for workers.
  alignas(64) std::atomic<uint32_t> news = 0;
  std::atomic<uint32_t> sleeping = 0;
  LoopSlot slot;
};
constinit Crew crew;

void AnnounceNews() {
  crew.news.fetch_add(1, std::memory_order_seq_cst);
  // A sleeper may be one that leaves the loop alone, so all are woken.
  if (crew.sleeping.load(std::memory_order_seq_cst) > 0) FutexWake(crew.news, UINT32_MAX);
}

// Returns when there are other news than `seen`.
void WaitForNews(uint32_t seen, SpinBudget& budget) {
  const auto arrived = [&] { return crew.news.load(std::memory_order_acquire) != seen; };
  const auto start = std::chrono::steady_clock::now();
  if (!SpinUntil(budget.now(), arrived)) {
    // Counted before the last look at the news, just as AnnounceNews looks at the count after its
    // change: one of the two sees the other.
    crew.sleeping.fetch_add(1, std::memory_order_seq_cst);
    while (crew.news.load(std::memory_order_seq_cst) == seen) FutexWait(crew.news, seen);
    crew.sleeping.fetch_sub(1, std::memory_order_relaxed);
  }
  budget.Learn(std::chrono::steady_clock::now() - start);
}

}  // namespace

void ExpectHostedWorkers(uint32_t count) {
  crew.is_stopping.store(false, std::memory_order_release);
  crew.workers.store(count, std::memory_order_release);
}

void RunHostedWorker(uint32_t index) {
  inside_loop = true;  // a worker runs nothing but loop bodies
  SpinBudget budget(ThreadPoolOptions().spin);
  for (;;) {
    // Read before everything else: any later announcement ends the wait below.
    const uint32_t seen = crew.news.load(std::memory_order_acquire);
    if (crew.is_stopping.load(std::memory_order_acquire)) break;
    const bool may_help = index < crew.helpers.load(std::memory_order_acquire);
    if (!may_help || crew.slot.Help(index + 1, [] {}) == 0) WaitForNews(seen, budget);
  }
  inside_loop = false;
}

void StopHostedWorkers() {
  crew.workers.store(0, std::memory_order_release);
  crew.is_stopping.store(true, std::memory_order_release);
  AnnounceNews();
}

ThreadPool::ThreadPool(ThreadPoolOptions options) : options_(std::move(options)) {
  const int most = static_cast<int>(crew.workers.load(std::memory_order_acquire)) + 1;
  threads_ = options_.threads > 0 ? std::min(options_.threads, most) : most;
}

ThreadPool::~ThreadPool() = default;

Status ThreadPool::Start() { return OkStatus(); }

void ThreadPool::RunDivided(size_t n, size_t grain, Body body, const StopSignal* stop) noexcept {
  const size_t chunks = n / grain + (n % grain != 0);
  if (inside_loop || chunks > LoopSlot::kMaxChunks || !crew.slot.TryAcquire()) {
    return RunInline(n, grain, body, stop);
  }
  LoopStats* const stats = LoopStats::Current();
  LoopClock clock(stats);
  crew.helpers.store(static_cast<uint32_t>(threads_ - 1), std::memory_order_release);
  const LoopSlot::Loop loop = {n, grain, body, static_cast<size_t>(threads_), stop, stats};
  crew.slot.Open(loop, static_cast<uint32_t>(chunks));
  clock.Lap(&LoopStats::Times::distribution);
  AnnounceNews();
  clock.Lap(&LoopStats::Times::enqueue);
  inside_loop = true;
  crew.slot.FinishAndRelease(options_.spin, clock);
  inside_loop = false;
  if (stats != nullptr) {
    stats->AddBlockSize(grain);
    clock.Lap(&LoopStats::Times::revoke);
  }
}

}  // namespace tenon
