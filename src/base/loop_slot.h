// A loop in progress, and how threads share it.
#pragma once

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
// workers live. A thread claims chunks by advancing one word that also holds the slot's generation,
// so a claim cannot succeed for a loop other than the one that the thread read, and a caller waits
// for claimed chunks only, never for threads that merely looked.
class alignas(128) LoopSlot {
 public:
  struct Loop {
    size_t n;
    size_t grain;
    LoopBody body;
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
  // Calls on_entry(chunks left unclaimed) after the first claim.
  uint32_t Help(FunctionRef<void(uint32_t)> on_entry);

 private:
  static constexpr uint32_t kClosed = UINT32_MAX;      // a chunk index beyond every count
  static constexpr uint32_t kCallerSleeps = 1u << 31;  // flag in unfinished_

  uint32_t RunFrom(uint32_t chunk, uint32_t chunks, const Loop& loop);
  void WaitForOthers(std::chrono::nanoseconds spin);

  std::atomic<bool> taken_ = false;
  // Generation in the upper half, next chunk to claim in the lower.
  std::atomic<uint64_t> claim_ = kClosed;
  // Written only while the slot is closed.
  std::atomic<uint32_t> chunks_ = 0;
  std::atomic<const Loop*> loop_ = nullptr;
  // Chunks that have not been reported as done. Not on the cache line that idle workers poll.
  alignas(64) std::atomic<uint32_t> unfinished_ = 0;
};

}  // namespace tenon
