// Options and callbacks of a ThreadPool.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <vector>

#include "base/function_ref.h"

namespace tenon {

// A part of a loop: the elements [begin, end).
using LoopBody = FunctionRef<void(size_t begin, size_t end)>;

// A client's functions for making threads; they have the types of OrtCustomCreateThreadFn and
// OrtCustomJoinThreadFn.
struct ThreadCallbacks {
  // Starts a thread that calls worker(param) and returns a handle for it; null on failure.
  void* (*create)(void* options, void (*worker)(void*), void* param) = nullptr;
  // Waits until that thread's worker has returned. Called once for every handle, by ~ThreadPool.
  void (*join)(void* handle) = nullptr;
  // Passed to create.
  void* options = nullptr;
};

// A client's callbacks about the work of workers; they have the types of the functions of
// OrtThreadPoolCallbacksConfig. Each may be null; none throws.
struct WorkCallbacks {
  // Called by the thread that has the work, once for every worker that may take part. The result is
  // passed to the other callbacks.
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
  // Callbacks for every loop that is divided among workers.
  WorkCallbacks work;
  // Workers treat denormals as zero. Callers set this themselves: SetDenormalsAsZero.
  bool denormals_as_zero = false;
  // Workers are named "NAME-1", ... as far as the system's 15 characters reach.
  std::string name = "tenon";
};

}  // namespace tenon
