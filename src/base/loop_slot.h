// A loop in progress, and how threads share it.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/function_ref.h"
#include "base/inline_array.h"
#include "base/loop_stats.h"
#include "base/stop_signal.h"
#include "base/thread_pool_options.h"

namespace tenon {

// A loop for a client's WorkCallbacks: a piece of work for each worker that may help.
class AnnouncedWork {
 public:
  AnnouncedWork(const WorkCallbacks& callbacks, size_t pieces);
  // The loop is over: pieces that no worker began are abandoned.
  ~AnnouncedWork();

  // Called by a worker around its part, at most as often as there are pieces. The result of Begin
  // is passed to End.
  void* Begin();
  void End(void* data) { callbacks_.Stop(data); }

 private:
  static constexpr size_t kInlinePieces = 64;

  const WorkCallbacks& callbacks_;
  InlineArray<void*, kInlinePieces> pieces_;
  std::atomic<size_t> begun_ = 0;
};

// A loop in progress: a slot that callers use one after another and that is never freed while
// workers live. Its chunks are divided into as many parts of neighbours as there are threads, and a
// thread claims those of its own part first: it then works on the same part of one tensor after
// another, which its caches have. Without chunks left there it helps with the other parts.
//
// A thread claims chunks by advancing a part's word, which also holds the slot's generation, so a
// claim cannot succeed for a loop other than the one that the thread read, and a caller waits for
// claimed chunks only, never for threads that merely looked.
class alignas(128) LoopSlot {
 public:
  struct Loop {
    size_t n;
    size_t grain;
    LoopBody body;
    size_t threads;                    // that may work on the loop, the caller's included
    const StopSignal* stop = nullptr;  // leaves out chunks; may be null
    LoopStats* stats = nullptr;        // collects the loop; may be null
    AnnouncedWork* work = nullptr;     // null: there are no callbacks
  };
  static constexpr uint32_t kMaxChunks = 1u << 30;

  // Called by callers: takes the slot if it is free; then opens it to workers for one loop.
  bool TryAcquire();
  void Open(const Loop& loop, uint32_t chunks);
  // Works on the loop until no chunk is left, then waits for the chunks of others, spinning for at
  // most `spin` before sleeping. Then frees the slot.
  void FinishAndRelease(std::chrono::nanoseconds spin, LoopClock& clock);

  // Called by workers: claims and runs chunks until none is left. Returns the number of chunks run.
  // Calls on_entry() after the first claim. Worker i has thread number i + 1.
  uint32_t Help(uint32_t thread, FunctionRef<void()> on_entry);
  // About how many chunks are not claimed yet. Called by a thread that has claimed some.
  uint32_t Unclaimed() const;

 private:
  static constexpr uint32_t kClosed = UINT32_MAX;      // a chunk index beyond every count
  static constexpr uint32_t kCallerSleeps = 1u << 31;  // flag in unfinished_
  static constexpr uint32_t kMostParts = 16;

  // How the chunks of a loop are divided. Aligned, or Clang 14 calls libatomic for it.
  struct alignas(uint64_t) Division {
    uint32_t chunks = 0;
    uint32_t parts = 1;
    uint32_t Begin(uint32_t part) const {
      return static_cast<uint32_t>(uint64_t{chunks} * part / parts);
    }
    uint32_t End(uint32_t part) const { return part < parts ? Begin(part + 1) : 0; }
  };
  struct alignas(64) Part {
    // Generation in the upper half, next chunk to claim in the lower.
    std::atomic<uint64_t> claim = kClosed;

    uint32_t Next() const { return static_cast<uint32_t>(claim.load(std::memory_order_relaxed)); }
    uint32_t Claim() {
      return static_cast<uint32_t>(claim.fetch_add(1, std::memory_order_relaxed));
    }
  };

  uint32_t RunFrom(uint32_t part, uint32_t chunk, const Division& division, const Loop& loop);
  void WaitForOthers(std::chrono::nanoseconds spin);

  std::atomic<bool> taken_ = false;
  uint32_t generation_ = 0;  // of whoever took the slot
  // Written only while all parts are closed.
  std::atomic<Division> division_ = Division();
  std::atomic<const Loop*> loop_ = nullptr;
  // Chunks that have not been reported as done. Not on a cache line that idle workers poll.
  alignas(64) std::atomic<uint32_t> unfinished_ = 0;
  std::array<Part, kMostParts> parts_;
};

}  // namespace tenon
