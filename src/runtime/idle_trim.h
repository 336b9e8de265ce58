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
  // Pooled memory of `executor` goes `idle_time` after its last run; never if that is 0.
  IdleTrim(Executor& executor, std::chrono::microseconds idle_time)
      : executor_(executor), idle_time_(idle_time) {}
  ~IdleTrim() { Stop(); }
  IdleTrim(const IdleTrim&) = delete;
  IdleTrim& operator=(const IdleTrim&) = delete;

  // A run is over: if it left much memory behind, that is given back when no other run comes.
  void RunEnded();
  // No run will come. Waits for a trim in progress.
  void Stop();

 private:
  // Trims if no run has ended lately; else when to look again.
  std::optional<std::chrono::steady_clock::time_point> TrimIfIdle();

  Executor& executor_;
  const std::chrono::microseconds idle_time_;
  std::atomic<std::chrono::steady_clock::time_point> last_run_end_{};  // while that is watched
  std::atomic<uint32_t> watched_in_ = 0;  // 1 + the generation of the process; 0: nobody watches
};

}  // namespace tenon
