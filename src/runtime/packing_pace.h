// How fast a session packs weights that it can also read as they are.
#pragma once

#include <algorithm>
#include <chrono>

#include "base/mutex.h"

namespace tenon {

// Spreads packing over a session's runs, so that none of them takes much longer than the first:
// packing may take half of the time, and kBurst at once after a pause. Thread-safe.
class PackingPace {
 public:
  using Clock = std::chrono::steady_clock;

  static constexpr Clock::duration kBurst = std::chrono::milliseconds(50);

  // Whether weights may be packed now.
  bool MayPack(Clock::time_point now) const {
    const MutexLock lock(mutex_);
    return now >= next_;
  }
  // Takes note of weights that were packed from `begin` to `end`.
  void Packed(Clock::time_point begin, Clock::time_point end) {
    const MutexLock lock(mutex_);
    next_ = std::max(next_, begin - kBurst) + 2 * (end - begin);
  }

 private:
  mutable Mutex mutex_;
  Clock::time_point next_;  // when weights may be packed
};

}  // namespace tenon
