#include "base/thread_pool.h"

#include <memory>

#include "base/cpu_info.h"
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

Status ThreadPool::Start() { return threads_ > 1 ? Crew().Start() : OkStatus(); }

void ThreadPool::RunDivided(size_t n, size_t grain, Body body) noexcept {
  const size_t chunks = n / grain + (n % grain != 0);
  if (WorkerCrew::InsideLoop() || !Crew().Run({n, grain, body, LoopStats::Current()}, chunks)) {
    RunInline(n, grain, body);
  }
}

WorkerCrew& ThreadPool::Crew() {
  WorkerCrew* crew = crew_.load(std::memory_order_acquire);
  if (crew && crew->BelongsToThisProcess()) return *crew;
  // The crew of a parent process is never freed: the state of its threads and locks is unknown
  // here.
  auto fresh = std::make_unique<WorkerCrew>(options_, threads_ - 1);
  if (crew_.compare_exchange_strong(crew, fresh.get(), std::memory_order_acq_rel)) {
    crew = fresh.release();
  }
  return *crew;
}

}  // namespace tenon
