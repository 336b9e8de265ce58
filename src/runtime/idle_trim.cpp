#include "runtime/idle_trim.h"

#include "base/alarm.h"
#include "base/fork.h"
#include "base/heap.h"
#include "base/process_end.h"
#include "runtime/executor.h"

namespace tenon {
namespace {

// Freeing less is not worth a thread and the page faults of the next run.
constexpr size_t kWorthTrimming = size_t{16} << 20;

}  // namespace

void IdleTrim::RunEnded() {
  using Clock = std::chrono::steady_clock;
  if (idle_time_.count() == 0) return;
  const uint32_t watched = ForkGeneration() + 1;
  const bool is_watched = watched_in_.load(std::memory_order_relaxed) == watched;
  if (!is_watched && executor_.PooledBytes() <= kWorthTrimming) return;
  const Clock::time_point now = Clock::now();
  // TrimIfIdle clears watched_in_ before it reads last_run_end_ again. So either it sees this run,
  // or this run sees that watched_in_ is 0.
  last_run_end_.store(now);
  if (watched_in_.load() == watched || watched_in_.exchange(watched) == watched) return;
  SetAlarm(this, now + idle_time_, [this] { return TrimIfIdle(); });
}

void IdleTrim::Stop() { ClearAlarm(this); }

std::optional<std::chrono::steady_clock::time_point> IdleTrim::TrimIfIdle() {
  if (IsProcessEnding()) return std::nullopt;
  const auto is_idle = [&] {
    return std::chrono::steady_clock::now() - last_run_end_.load() >= idle_time_;
  };
  if (!is_idle()) return last_run_end_.load() + idle_time_;
  const uint32_t watched = watched_in_.exchange(0);
  if (!is_idle()) {
    uint32_t unwatched = 0;
    if (!watched_in_.compare_exchange_strong(unwatched, watched)) return std::nullopt;
    return last_run_end_.load() + idle_time_;
  }
  executor_.Trim();
  GiveFreedMemoryBack();
  return std::nullopt;
}

}  // namespace tenon
