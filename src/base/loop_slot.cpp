#include "base/loop_slot.h"

#include <algorithm>

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
  if (loop.stats != nullptr) loop.stats->ExpectHelpers(loop.threads - 1);
  const auto closed = [this] { return uint64_t{generation_} << 32 | kClosed; };
  const uint32_t parts_before = division_.load(std::memory_order_relaxed).parts;
  for (uint32_t i = 0; i < parts_before; ++i) {
    parts_[i].claim.store(closed(), std::memory_order_relaxed);
  }
  // Release stores: a worker that reads one of them also sees that the parts were closed, so the
  // claim that it would make with values of two loops fails.
  const Division division = {
      chunks, static_cast<uint32_t>(std::min<size_t>({loop.threads, chunks, kMostParts}))};
  division_.store(division, std::memory_order_release);
  loop_.store(&loop, std::memory_order_release);
  unfinished_.store(chunks, std::memory_order_relaxed);
  ++generation_;
  for (uint32_t i = 0; i < division.parts; ++i) {
    parts_[i].claim.store(uint64_t{generation_} << 32 | division.Begin(i),
                          std::memory_order_release);
  }
}

uint32_t LoopSlot::Help(uint32_t thread, FunctionRef<void()> on_entry) {
  const uint32_t parts = division_.load(std::memory_order_acquire).parts;
  for (uint32_t i = 0; i < parts; ++i) {
    const uint32_t part = (thread + i) % parts;
    std::atomic<uint64_t>& claim = parts_[part].claim;
    uint64_t seen = claim.load(std::memory_order_acquire);
    Division division;
    const Loop* loop;
    do {
      division = division_.load(std::memory_order_acquire);
      loop = loop_.load(std::memory_order_acquire);
    } while (static_cast<uint32_t>(seen) < division.End(part) &&
             !claim.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                          std::memory_order_acquire));
    const auto chunk = static_cast<uint32_t>(seen);
    if (chunk >= division.End(part)) continue;
    on_entry();
    void* const piece = loop->work == nullptr ? nullptr : loop->work->Begin();
    const StopScope stopping(loop->stop);
    const uint32_t done = RunFrom(part, chunk, division, *loop);
    if (loop->work != nullptr) loop->work->End(piece);
    if (loop->stats != nullptr) loop->stats->AddHelp(done);
    // From here on the slot may serve another loop. Waking its caller unnecessarily does no harm.
    const uint32_t before = unfinished_.fetch_sub(done, std::memory_order_acq_rel);
    if (before == (kCallerSleeps | done)) FutexWake(unfinished_, 1);
    return done;
  }
  return 0;
}

uint32_t LoopSlot::Unclaimed() const {
  const Division division = division_.load(std::memory_order_relaxed);
  uint32_t count = 0;
  for (uint32_t i = 0; i < division.parts; ++i) {
    const uint32_t next = parts_[i].Next();
    if (next < division.End(i)) count += division.End(i) - next;
  }
  return count;
}

void LoopSlot::FinishAndRelease(std::chrono::nanoseconds spin, LoopClock& clock) {
  const Division division = division_.load(std::memory_order_relaxed);
  const Loop& loop = *loop_.load(std::memory_order_relaxed);
  const uint32_t done = RunFrom(0, parts_[0].Claim(), division, loop);
  if (done > 0) unfinished_.fetch_sub(done, std::memory_order_acq_rel);
  clock.Lap(&LoopStats::Times::run);
  WaitForOthers(spin);
  clock.Lap(&LoopStats::Times::wait);
  taken_.store(false, std::memory_order_release);
}

// Runs `chunk` of a part, which is already claimed, and then further chunks. The loop cannot end
// before the caller of this function reports them, so simple increments suffice.
uint32_t LoopSlot::RunFrom(uint32_t part, uint32_t chunk, const Division& division,
                           const Loop& loop) {
  uint32_t done = 0;
  for (uint32_t i = 0;;) {
    while (chunk < division.End(part)) {
      const size_t begin = chunk * loop.grain;
      if (loop.stop == nullptr || !loop.stop->CutsLoop()) {
        loop.body(begin, loop.n - begin > loop.grain ? begin + loop.grain : loop.n);
      }
      ++done;
      chunk = parts_[part].Claim();
    }
    do {
      if (++i == division.parts) return done;
      part = part + 1 == division.parts ? 0 : part + 1;
    } while (parts_[part].Next() >= division.End(part));
    chunk = parts_[part].Claim();
  }
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
