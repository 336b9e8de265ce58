// The costs of loops over a thread pool, for profilers.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/mutex.h"

namespace tenon {

// Collects the loops that one thread divides among a pool. Loops that the thread does alone are not
// included, nor what there is no memory for.
class LoopStats {
 public:
  // A worker that took part, and the CPU that it last did so on.
  struct Helper {
    int64_t thread = 0;
    int core = -1;
    uint32_t blocks = 0;
  };
  // What the calling thread did, in this order for each loop.
  struct Times {
    std::chrono::nanoseconds distribution{0};  // announcing the loop
    std::chrono::nanoseconds enqueue{0};       // waking workers
    std::chrono::nanoseconds run{0};           // working on the loop's blocks
    std::chrono::nanoseconds wait{0};          // waiting for the blocks of others
    std::chrono::nanoseconds revoke{0};        // withdrawing the loop
  };
  static constexpr size_t kMostBlockSizes = 32;
  struct Record {
    Times times;
    // How many elements a block of the loops had: each size once, in the order of first use, and no
    // more than kMostBlockSizes.
    std::vector<size_t> block_sizes;
    std::vector<Helper> helpers;
  };

  // Of the calling thread; null if they are not collected.
  static LoopStats* Current();

  bool has_loops() const { return !record_.block_sizes.empty(); }
  // What was collected. No loop is running, and nothing is collected afterwards.
  Record Take() { return std::move(record_); }

  // Called by the thread whose loops these are.
  void AddBlockSize(size_t size);
  void AddTime(std::chrono::nanoseconds Times::*part, std::chrono::nanoseconds time) {
    record_.times.*part += time;
  }
  // Called by that thread before a loop with which up to `workers` others may help: they allocate
  // nothing.
  void ExpectHelpers(size_t workers);
  // Called by a worker, from any thread, before the loop that it helped with ends.
  void AddHelp(uint32_t blocks);

 private:
  friend class LoopStatsScope;
  static LoopStats*& OfThread();

  Record record_;
  Mutex mutex_;  // of record_.helpers
};

// Collects the loops of the calling thread while it lives, unless `stats` is null. Scopes nest: the
// innermost collects.
class LoopStatsScope {
 public:
  explicit LoopStatsScope(LoopStats* stats);
  ~LoopStatsScope();
  LoopStatsScope(const LoopStatsScope&) = delete;
  LoopStatsScope& operator=(const LoopStatsScope&) = delete;

 private:
  LoopStats* const previous_;
};

// Divides the time of a loop into parts; does nothing if `stats` is null.
class LoopClock {
 public:
  explicit LoopClock(LoopStats* stats) : stats_(stats) {
    if (stats_ != nullptr) last_ = std::chrono::steady_clock::now();
  }
  // The time since the last lap belongs to `part`.
  void Lap(std::chrono::nanoseconds LoopStats::Times::*part) {
    if (stats_ == nullptr) return;
    const auto now = std::chrono::steady_clock::now();
    stats_->AddTime(part, now - last_);
    last_ = now;
  }

 private:
  LoopStats* const stats_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace tenon
