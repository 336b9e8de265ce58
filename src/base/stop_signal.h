// Ends the loops of a run before they are done.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>

namespace tenon {

// Says whether a run is to end early, and whether one of its loops did. Thread-safe.
class StopSignal {
 public:
  using Clock = std::chrono::steady_clock;

  // Set while `*terminate` is true, which may be null, and once `timeout` has passed.
  StopSignal(const std::atomic<bool>* terminate, std::optional<std::chrono::nanoseconds> timeout)
      : terminate_(terminate), timeout_(timeout) {
    if (!timeout) return;
    const Clock::time_point now = Clock::now();
    // A timeout may be longer than what is left of the clock's numbers.
    deadline_ = now + std::min(*timeout, Clock::time_point::max() - now);
  }
  StopSignal(const StopSignal&) = delete;
  StopSignal& operator=(const StopSignal&) = delete;

  bool is_terminated() const {
    return terminate_ != nullptr && terminate_->load(std::memory_order_relaxed);
  }
  bool is_late() const { return deadline_ && Clock::now() > *deadline_; }
  std::chrono::nanoseconds timeout() const { return timeout_.value_or(Clock::duration::zero()); }

  // Called by a loop before a part of its work: whether to leave out that part.
  bool CutsLoop() const {
    if (!is_terminated() && !is_late()) return false;
    has_cut_.store(true, std::memory_order_relaxed);
    return true;
  }
  // Whether a loop has left out a part. What it computed is incomplete.
  bool has_cut() const { return has_cut_.load(std::memory_order_relaxed); }

  // Of the loops of the calling thread; null: they run to their end.
  static const StopSignal* Current();
  // CutsLoop() of that signal: for work that takes long, but cannot be divided.
  static bool CutsCurrent() {
    const StopSignal* const current = Current();
    return current != nullptr && current->CutsLoop();
  }

 private:
  friend class StopScope;
  static const StopSignal*& OfThread();

  const std::atomic<bool>* terminate_ = nullptr;
  std::optional<std::chrono::nanoseconds> timeout_;
  std::optional<Clock::time_point> deadline_;
  mutable std::atomic<bool> has_cut_ = false;
};

// Makes loops heed `signal` while it lives: those that the calling thread begins, and the loops
// inside them. Null: loops run to their end. Scopes nest: the innermost counts.
class StopScope {
 public:
  explicit StopScope(const StopSignal* signal);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

 private:
  const StopSignal* const previous_;
};

}  // namespace tenon
