// The threads of a ThreadPool, and how they share loops.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

#include "base/loop_slot.h"
#include "base/loop_stats.h"
#include "base/spin.h"
#include "base/status.h"
#include "base/thread_pool_options.h"

namespace tenon {

// The workers of one pool in one process. Thread-safe.
class WorkerCrew {
 public:
  // Starts nothing yet.
  WorkerCrew(const ThreadPoolOptions& options, int workers);
  // Stops and joins the workers.
  ~WorkerCrew();

  // Starts the workers, once; see ThreadPool::Start.
  Status Start();

  // Runs the loop with the help of the workers, which it starts if necessary. Returns false,
  // without any effect, if the loop cannot be divided: too many chunks, or too many loops at once.
  bool Run(const LoopSlot::Loop& loop, size_t chunks) noexcept;

  // False in a child process of the one that made this crew.
  bool BelongsToThisProcess() const;

  // Whether the calling thread is in the body of a divided loop, of any crew.
  static bool InsideLoop();

 private:
  static constexpr uint32_t kSlots = 16;
  struct Worker {
    WorkerCrew* crew = nullptr;
    uint32_t index = 0;
    std::thread thread;             // without client callbacks
    void* client_thread = nullptr;  // with them
  };

  Status StartWorkers();
  Status StartWorker(Worker& worker);
  Status CheckAffinities() const;
  void Prepare(const Worker& worker) const;
  void WorkUntilStopped(const Worker& worker);
  bool HelpAny(const Worker& worker, bool just_woken);
  bool WaitForNews(uint32_t seen, SpinBudget& budget);
  void WakeSleepers(uint32_t wanted);
  void RunIn(LoopSlot& slot, const LoopSlot::Loop& loop, uint32_t chunks, LoopClock& clock);

  const ThreadPoolOptions options_;
  const uint32_t generation_;  // of the process: see BelongsToThisProcess
  std::vector<Worker> workers_;
  std::once_flag start_once_;
  std::atomic<bool> started_ = false;
  Status start_status_;

  // Advances whenever there is something new for workers: a loop, or the end.
  alignas(64) std::atomic<uint32_t> news_ = 0;
  std::atomic<bool> stopping_ = false;
  alignas(64) std::atomic<uint32_t> spinning_ = 0;
  std::atomic<uint32_t> sleeping_ = 0;
  std::atomic<std::chrono::steady_clock::rep> woken_at_ = 0;  // when sleepers were last woken
  std::array<LoopSlot, kSlots> slots_;
};

}  // namespace tenon
