// Lets runs into a session until it ends, and lets the end wait for them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/sleep.h"

namespace tenon {

// Thread-safe. A run visits; that takes no lock.
class RunGate {
 public:
  // A run's stay, which ends with this.
  class Visit {
   public:
    explicit Visit(RunGate& gate) : gate_(gate.Enter() ? &gate : nullptr) {}
    ~Visit() {
      if (gate_ != nullptr) gate_->Leave();
    }
    Visit(const Visit&) = delete;
    Visit& operator=(const Visit&) = delete;
    bool is_admitted() const { return gate_ != nullptr; }

   private:
    RunGate* const gate_;
  };

  // Lets nobody in any more and blocks until everybody has left. Looks again and again: a run that
  // woke it up would touch a gate that the end may have freed by then.
  void Close() {
    is_closed_.store(true);
    while (runs_.load() != 0) SleepFor(std::chrono::microseconds(50));
  }

 private:
  // False once Close was called; then Leave must not be.
  bool Enter() {
    runs_.fetch_add(1);
    if (!is_closed_.load()) return true;
    Leave();
    return false;
  }
  // The last thing that a run does to the gate, which may be gone afterwards.
  void Leave() { runs_.fetch_sub(1); }

  std::atomic<int64_t> runs_ = 0;
  std::atomic<bool> is_closed_ = false;
};

}  // namespace tenon
