// Lets runs into a session until it ends, and lets the end wait for them.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon {

// Thread-safe. A run passes Enter and Leave; neither takes a lock.
class RunGate {
 public:
  // False once Close was called; then Leave must not be.
  bool Enter() {
    runs_.fetch_add(1);
    if (!is_closed_.load()) return true;
    Leave();
    return false;
  }
  void Leave() {
    runs_.fetch_sub(1);
    if (is_closed_.load()) runs_.notify_all();
  }
  // Lets nobody in any more and blocks until everybody has left.
  void Close() {
    is_closed_.store(true);
    for (int64_t runs = runs_.load(); runs != 0; runs = runs_.load()) runs_.wait(runs);
  }

 private:
  std::atomic<int64_t> runs_ = 0;
  std::atomic<bool> is_closed_ = false;
};

}  // namespace tenon
