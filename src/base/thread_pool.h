// ThreadPool: loops over sizes, divided among threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "base/stop_signal.h"
#include "base/thread_pool_options.h"

namespace tenon {

class WorkerCrew;

// Divides loops among the calling thread and a set of workers, which start at the first loop that
// can use them. Several threads may call at once. Workers that find nothing to do spin for a
// bounded time and then sleep: an idle pool costs no CPU.
//
// After fork() the child's pool makes workers of its own at its first loop. (A child forked inside
// a loop body may only exec or exit.)
class ThreadPool {
 public:
  using Body = LoopBody;

  explicit ThreadPool(ThreadPoolOptions options = {});
  // Joins the workers. No loop may be running.
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  // The number of threads that work on a loop, the caller's included.
  int threads() const { return threads_; }

  // Starts the workers now instead of at the first loop.
  // errors  kInvalidArgument  more affinity sets than workers, or a set without a usable CPU
  //         kFail             a thread could not be started; those that could are used
  //         kRuntimeException out of memory
  // ParallelFor ignores these failures and works with the threads that there are.
  Status Start();

  // Calls body(k * grain, min(n, (k + 1) * grain)) once for every k in [0, ceil(n / grain)), in any
  // order and on any thread of the pool, and returns when all calls have. The division depends only
  // on n and grain, never on the number of threads; grain 0 means 1. What the caller did before is
  // visible to every call, and what the calls did is visible to the caller afterwards.
  // body must not throw. It may start loops itself: those run on its own thread, unless the outer
  // loop had a single call. Nothing is allocated, except at the first loop.
  // Once StopSignal::Current() of the caller is set, the remaining calls are left out.
  void ParallelFor(size_t n, size_t grain, Body body) noexcept {
    if (grain == 0) grain = 1;
    const StopSignal* const stop = StopSignal::Current();
    if (n <= grain || threads_ == 1) {
      RunInline(n, grain, body, stop);
    } else {
      RunDivided(n, grain, body, stop);
    }
  }

 private:
  static void RunInline(size_t n, size_t grain, Body body, const StopSignal* stop) {
    for (size_t begin = 0; begin < n;) {
      if (stop != nullptr && stop->CutsLoop()) return;
      const size_t end = n - begin > grain ? begin + grain : n;
      body(begin, end);
      begin = end;
    }
  }
  void RunDivided(size_t n, size_t grain, Body body, const StopSignal* stop) noexcept;
  WorkerCrew* Crew();  // null if there is no memory for it

  ThreadPoolOptions options_;
  int threads_;
  // Owned. Replaced in a forked child, where the parent's workers do not exist.
  std::atomic<WorkerCrew*> crew_ = nullptr;
};

}  // namespace tenon
