#include "base/alarm.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>

#include "base/fork.h"

namespace tenon {
namespace {

// The alarms of a process and their thread.
class AlarmClock {
 public:
  AlarmClock() : generation_(ForkGeneration()) {}

  uint32_t generation() const { return generation_; }

  void Set(const void* owner, AlarmTime time, AlarmFunction function) {
    const std::lock_guard lock(mutex_);
    if (is_over_) return;
    alarms_.insert_or_assign(owner, Alarm{time, std::move(function), ++last_number_});
    if (has_thread_) {
      changed_.notify_all();
      return;
    }
    if (thread_.joinable()) thread_.join();  // has nothing left to do
    try {
      thread_ = std::thread([this] { Work(); });
      has_thread_ = true;
    } catch (const std::system_error&) {
      alarms_.clear();  // the system cannot start a thread
    }
  }

  void Clear(const void* owner) {
    std::unique_lock lock(mutex_);
    if (alarms_.erase(owner) > 0) changed_.notify_all();
    changed_.wait(lock, [&] { return called_ != owner; });
  }

  // Ends the thread permanently.
  void End() {
    {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      alarms_.clear();
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  struct Alarm {
    AlarmTime time;
    AlarmFunction function;
    uint64_t number = 0;  // distinguishes it from one that replaces it
  };

  void Work() {
    std::unique_lock lock(mutex_);
    while (!alarms_.empty()) {
      const auto next = std::min_element(
          alarms_.begin(), alarms_.end(),
          [](const auto& a, const auto& b) { return a.second.time < b.second.time; });
      const AlarmTime time = next->second.time;
      if (std::chrono::steady_clock::now() < time) {
        changed_.wait_until(lock, time);
      } else {
        Call(next->first, next->second, lock);
      }
    }
    has_thread_ = false;
  }

  // Unlocks while the alarm is called.
  void Call(const void* owner, const Alarm& alarm, std::unique_lock<std::mutex>& lock) {
    const uint64_t number = alarm.number;
    const AlarmFunction function = alarm.function;
    called_ = owner;
    lock.unlock();
    const std::optional<AlarmTime> again = function();
    lock.lock();
    called_ = nullptr;
    changed_.notify_all();
    const auto known = alarms_.find(owner);
    if (known == alarms_.end() || known->second.number != number) return;
    if (again) {
      known->second.time = *again;
    } else {
      alarms_.erase(known);
    }
  }

  const uint32_t generation_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<const void*, Alarm> alarms_;
  uint64_t last_number_ = 0;
  const void* called_ = nullptr;  // the owner whose alarm is being called
  bool has_thread_ = false;       // one that will read alarms_ again
  bool is_over_ = false;
  std::thread thread_;
};

// Never destroyed, but ended; replaced in a forked child.
constinit std::atomic<AlarmClock*> the_clock = nullptr;

// This process's clock; null if there is none yet.
AlarmClock* FindClock() {
  AlarmClock* const clock = the_clock.load(std::memory_order_acquire);
  return clock != nullptr && clock->generation() == ForkGeneration() ? clock : nullptr;
}

AlarmClock& Clock() {
  if (AlarmClock* const clock = FindClock()) return *clock;
  AlarmClock* known = the_clock.load(std::memory_order_acquire);
  auto fresh = std::make_unique<AlarmClock>();
  if (known != nullptr && known->generation() == fresh->generation()) return *known;
  const bool is_first = known == nullptr;
  if (!the_clock.compare_exchange_strong(known, fresh.get(), std::memory_order_acq_rel)) {
    return *known;
  }
  if (is_first) {
    (void)std::atexit([] {
      if (AlarmClock* const clock = FindClock()) clock->End();
    });
  }
  return *fresh.release();
}

}  // namespace

void SetAlarm(const void* owner, AlarmTime time, AlarmFunction function) {
  Clock().Set(owner, time, std::move(function));
}

void ClearAlarm(const void* owner) {
  if (AlarmClock* const clock = FindClock()) clock->Clear(owner);
}

}  // namespace tenon
