// Gives memory of a session back to the system when it has not run for a while.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

namespace tenon {

class Executor;

// Thread-safe.
class IdleTrim {
 public:
  // Frees the pooled memory of `executor` `idle_time` after its last run; never if `idle_time` is
  // 0.
  IdleTrim(Executor& executor, std::chrono::microseconds idle_time)
      : executor_(executor), idle_time_(idle_time) {}
  ~IdleTrim() { Stop(); }
  IdleTrim(const IdleTrim&) = delete;
  IdleTrim& operator=(const IdleTrim&) = delete;

  // Called after each run. If much memory is pooled, it is freed later unless another run comes.
  void RunEnded();
  // Called when no run will follow. Waits for a trim in progress.
  void Stop();

 private:
  // Trims if no run has ended lately; else returns when to look again.
  std::optional<std::chrono::steady_clock::time_point> TrimIfIdle();

  Executor& executor_;
  const std::chrono::microseconds idle_time_;
  std::atomic<std::chrono::steady_clock::time_point> last_run_end_{};  // valid while watched
  std::atomic<uint32_t> watched_in_ = 0;  // 1 + the process's generation; 0: not watched
};

}  // namespace tenon
