#include "base/thread_pool.h"

#include <memory>

#include "base/cpu_info.h"
#include "base/exception_barrier.h"
#include "base/loop_stats.h"
#include "base/worker_crew.h"

namespace tenon {

ThreadPool::ThreadPool(ThreadPoolOptions options)
    : options_(std::move(options)),
      threads_(options_.threads > 0 ? options_.threads : UsableCpuCount()) {}

ThreadPool::~ThreadPool() {
  WorkerCrew* crew = crew_.load(std::memory_order_acquire);
  if (crew && crew->BelongsToThisProcess()) std::unique_ptr<WorkerCrew>{crew}.reset();
}

Status ThreadPool::Start() {
  if (threads_ == 1) return OkStatus();
  WorkerCrew* const crew = Crew();
  if (crew == nullptr) return RuntimeException("out of memory for {} threads", threads_);
  return crew->Start();
}

void ThreadPool::RunDivided(size_t n, size_t grain, Body body, const StopSignal* stop) noexcept {
  const size_t chunks = n / grain + (n % grain != 0);
  WorkerCrew* const crew = WorkerCrew::InsideLoop() ? nullptr : Crew();
  if (crew == nullptr || !crew->Run({.n = n,
                                     .grain = grain,
                                     .body = body,
                                     .threads = static_cast<size_t>(threads_),
                                     .stop = stop,
                                     .stats = LoopStats::Current()},
                                    chunks)) {
    RunInline(n, grain, body, stop);
  }
}

WorkerCrew* ThreadPool::Crew() {
  WorkerCrew* crew = crew_.load(std::memory_order_acquire);
  if (crew && crew->BelongsToThisProcess()) return crew;
  // The crew of a parent process is never freed: the state of its threads and locks is unknown
  // here.
  std::unique_ptr<WorkerCrew> fresh;
  const auto make = [&] { fresh = std::make_unique<WorkerCrew>(options_, threads_ - 1); };
  if (!HasMemoryFor(make)) return nullptr;
  if (crew_.compare_exchange_strong(crew, fresh.get(), std::memory_order_acq_rel)) {
    crew = fresh.release();
  }
  return crew;
}

}  // namespace tenon
