// ThreadPool: loops over sizes, divided among threads.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"

namespace tenon {

class WorkerCrew;

// How a client makes threads of its own; the shapes of OrtCustomCreateThreadFn and
// OrtCustomJoinThreadFn.
struct ThreadCallbacks {
  // Starts a thread that calls worker(param) and returns a handle for it; null on failure.
  void* (*create)(void* options, void (*worker)(void*), void* param) = nullptr;
  // Waits until that thread's worker has returned. Called once for every handle, by ~ThreadPool.
  void (*join)(void* handle) = nullptr;
  // Passed to create.
  void* options = nullptr;
};

// Tells a client of the work that is handed to workers; the shapes of the functions of
// OrtThreadPoolCallbacksConfig. Each may be null; none throws.
struct WorkCallbacks {
  // Called by the thread that has the work, once for every worker that may take part; what it
  // returns is passed to the others.
  void* (*on_enqueue)(void* context) = nullptr;
  // Called by a worker, around its part of the work.
  void (*on_start)(void* context, void* data) = nullptr;
  void (*on_stop)(void* context, void* data) = nullptr;
  // Called instead of these two, by the thread that had the work, for a worker that took no part.
  void (*on_abandon)(void* context, void* data) = nullptr;
  void* context = nullptr;

  bool are_set() const { return on_enqueue || on_start || on_stop || on_abandon; }
  void* Enqueue() const { return on_enqueue == nullptr ? nullptr : on_enqueue(context); }
  void Start(void* data) const {
    if (on_start != nullptr) on_start(context, data);
  }
  void Stop(void* data) const {
    if (on_stop != nullptr) on_stop(context, data);
  }
  void Abandon(void* data) const {
    if (on_abandon != nullptr) on_abandon(context, data);
  }
};

struct ThreadPoolOptions {
  // Threads that work on a loop, the caller's included; 0 means UsableCpuCount().
  int threads = 0;
  // The CPUs (numbered from 0) that worker i may run on; workers without a set, or with an empty
  // one, run anywhere. Callers are never moved.
  std::vector<std::vector<int>> affinities;
  // How long at most a thread spins for work, or for the end of its loop, before it sleeps.
  // 0 sleeps at once.
  std::chrono::microseconds spin{50};
  // Both functions or neither.
  ThreadCallbacks callbacks;
  // Hear of every loop that is divided among workers.
  WorkCallbacks work;
  // Workers take denormals as zero. Callers see to themselves: SetDenormalsAsZero.
  bool denormals_as_zero = false;
  // Workers are named "NAME-1", ... as far as the system's 15 characters reach.
  std::string name = "tenon";
};

// Divides loops among the calling thread and a set of workers, which start at the first loop that
// can use them. Several threads may call at once. Workers that find nothing to do spin for a
// bounded time and then sleep: an idle pool costs no CPU.
//
// After fork() the child's pool makes workers of its own at its first loop. (A child forked inside
// a loop body may only exec or exit.)
class ThreadPool {
 public:
  using Body = FunctionRef<void(size_t begin, size_t end)>;

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
  // ParallelFor ignores these failures and works with the threads that there are.
  Status Start();

  // Calls body(k * grain, min(n, (k + 1) * grain)) once for every k in [0, ceil(n / grain)), in any
  // order and on any thread of the pool, and returns when all calls have. The division depends on
  // n and grain alone, never on the number of threads; grain 0 means 1. What the caller did before
  // is visible to every call, and what the calls did is visible to the caller afterwards.
  // body must not throw. It may start loops itself: those run on its own thread, unless the outer
  // loop had a single call. Nothing is allocated, except at the first loop.
  void ParallelFor(size_t n, size_t grain, Body body) noexcept {
    if (grain == 0) grain = 1;
    if (n <= grain || threads_ == 1) {
      RunInline(n, grain, body);
    } else {
      RunDivided(n, grain, body);
    }
  }

 private:
  static void RunInline(size_t n, size_t grain, Body body) {
    for (size_t begin = 0; begin < n;) {
      const size_t end = n - begin > grain ? begin + grain : n;
      body(begin, end);
      begin = end;
    }
  }
  void RunDivided(size_t n, size_t grain, Body body) noexcept;
  WorkerCrew& Crew();

  ThreadPoolOptions options_;
  int threads_;
  // Owned. Replaced in a forked child, where the parent's workers do not exist.
  std::atomic<WorkerCrew*> crew_ = nullptr;
};

}  // namespace tenon
