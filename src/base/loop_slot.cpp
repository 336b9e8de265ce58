#include "base/loop_slot.h"

#include "base/futex.h"
#include "base/spin.h"

namespace tenon {

AnnouncedWork::AnnouncedWork(const WorkCallbacks& callbacks, size_t pieces)
    : callbacks_(callbacks), pieces_(pieces) {
  for (void*& piece : pieces_.span()) piece = callbacks_.Enqueue();
}

AnnouncedWork::~AnnouncedWork() {
  for (size_t i = begun_.load(std::memory_order_relaxed); i < pieces_.size(); ++i) {
    callbacks_.Abandon(pieces_[i]);
  }
}

void* AnnouncedWork::Begin() {
  void* const data = pieces_[begun_.fetch_add(1, std::memory_order_relaxed)];
  callbacks_.Start(data);
  return data;
}

bool LoopSlot::TryAcquire() {
  return !taken_.load(std::memory_order_relaxed) &&
         !taken_.exchange(true, std::memory_order_acquire);
}

void LoopSlot::Open(const Loop& loop, uint32_t chunks) {
  // Release stores: a worker that reads one of them also sees that claim_ has moved on, so the
  // claim that it would make with values of two loops fails.
  chunks_.store(chunks, std::memory_order_release);
  loop_.store(&loop, std::memory_order_release);
  unfinished_.store(chunks, std::memory_order_relaxed);
  const uint64_t generation = claim_.load(std::memory_order_relaxed) >> 32;
  claim_.store(generation << 32, std::memory_order_release);
}

uint32_t LoopSlot::Help(FunctionRef<void(uint32_t)> on_entry) {
  uint64_t seen = claim_.load(std::memory_order_acquire);
  uint32_t chunk;
  uint32_t chunks;
  const Loop* loop;
  do {
    chunk = static_cast<uint32_t>(seen);
    chunks = chunks_.load(std::memory_order_acquire);
    loop = loop_.load(std::memory_order_acquire);
    if (chunk >= chunks) return 0;
  } while (!claim_.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                         std::memory_order_acquire));
  on_entry(chunks - chunk - 1);
  void* const piece = loop->work == nullptr ? nullptr : loop->work->Begin();
  const StopScope stopping(loop->stop);
  const uint32_t done = RunFrom(chunk, chunks, *loop);
  if (loop->work != nullptr) loop->work->End(piece);
  if (loop->stats != nullptr) loop->stats->AddHelp(done);
  // From here on the slot may serve another loop. Waking its caller unnecessarily does no harm.
  const uint32_t before = unfinished_.fetch_sub(done, std::memory_order_acq_rel);
  if (before == (kCallerSleeps | done)) FutexWake(unfinished_, 1);
  return done;
}

void LoopSlot::FinishAndRelease(std::chrono::nanoseconds spin, LoopClock& clock) {
  const uint32_t chunks = chunks_.load(std::memory_order_relaxed);
  const uint32_t first = static_cast<uint32_t>(claim_.fetch_add(1, std::memory_order_relaxed));
  if (first < chunks) {
    const uint32_t done = RunFrom(first, chunks, *loop_.load(std::memory_order_relaxed));
    unfinished_.fetch_sub(done, std::memory_order_acq_rel);
  }
  clock.Lap(&LoopStats::Times::run);
  WaitForOthers(spin);
  clock.Lap(&LoopStats::Times::wait);
  const uint64_t generation = claim_.load(std::memory_order_relaxed) >> 32;
  claim_.store((generation + 1) << 32 | kClosed, std::memory_order_release);
  taken_.store(false, std::memory_order_release);
}

// Runs `chunk`, which is already claimed, and then further chunks. The loop cannot end before the
// caller of this function reports them, so simple increments suffice.
uint32_t LoopSlot::RunFrom(uint32_t chunk, uint32_t chunks, const Loop& loop) {
  uint32_t done = 0;
  while (chunk < chunks) {
    const size_t begin = chunk * loop.grain;
    if (loop.stop == nullptr || !loop.stop->CutsLoop()) {
      loop.body(begin, loop.n - begin > loop.grain ? begin + loop.grain : loop.n);
    }
    ++done;
    chunk = static_cast<uint32_t>(claim_.fetch_add(1, std::memory_order_relaxed));
  }
  return done;
}

void LoopSlot::WaitForOthers(std::chrono::nanoseconds spin) {
  const auto finished = [this] { return unfinished_.load(std::memory_order_acquire) == 0; };
  if (SpinUntil(spin, finished)) return;
  uint32_t left = unfinished_.load(std::memory_order_acquire);
  while ((left & ~kCallerSleeps) != 0) {
    if ((left & kCallerSleeps) == 0 &&
        !unfinished_.compare_exchange_weak(left, left | kCallerSleeps, std::memory_order_acquire)) {
      continue;
    }
    FutexWait(unfinished_, left | kCallerSleeps);
    left = unfinished_.load(std::memory_order_acquire);
  }
}

}  // namespace tenon
