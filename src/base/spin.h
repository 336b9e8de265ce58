// Waiting for a short time without sleeping.
#pragma once

#include <algorithm>
#include <chrono>

namespace tenon {

inline void PauseSpinning() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Spins until done() or until `limit` has passed; returns the last done().
template <class Done>
bool SpinUntil(std::chrono::nanoseconds limit, Done done) {
  if (done()) return true;
  if (limit.count() <= 0) return false;
  constexpr int kPausesPerLookAtTheClock = 8;
  const std::chrono::steady_clock::time_point end = std::chrono::steady_clock::now() + limit;
  do {
    for (int i = 0; i < kPausesPerLookAtTheClock; ++i) {
      PauseSpinning();
      if (done()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return done();
}

// How long a thread spins before it sleeps: the full time if work has lately come within that time,
// and less and less if it has not.
class SpinBudget {
 public:
  explicit SpinBudget(std::chrono::nanoseconds full) : full_(full), now_(full) {}
  std::chrono::nanoseconds now() const { return now_; }
  void Learn(std::chrono::nanoseconds waited) {
    now_ = waited <= full_ ? full_ : std::max(now_ / 2, full_ / 16);
  }

 private:
  std::chrono::nanoseconds full_;
  std::chrono::nanoseconds now_;
};

}  // namespace tenon
