// Lets runs into a session until it ends, and lets the end wait for them.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

#include "base/sleep.h"

namespace tenon {

// Counts the runs in progress without a lock. Thread-safe.
class RunGate {
 public:
  // A run in progress, from construction to destruction.
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

  // Admits no further run and blocks until the last one has left. It polls: a run that signalled
  // the gate could touch it after the session has freed it.
  void Close() {
    is_closed_.store(true);
    while (runs_.load() != 0) SleepFor(std::chrono::microseconds(50));
  }

 private:
  // False after Close; then Leave must not be called.
  bool Enter() {
    runs_.fetch_add(1);
    if (!is_closed_.load()) return true;
    Leave();
    return false;
  }
  // The last access of a run to the gate, which may be freed afterwards.
  void Leave() { runs_.fetch_sub(1); }

  std::atomic<int64_t> runs_ = 0;
  std::atomic<bool> is_closed_ = false;
};

}  // namespace tenon
