// An allocator whose actions appear in traces.
#pragma once

#include <memory>
#include <string>

#include "runtime/profiler.h"
#include "tensor/stream_allocator.h"

namespace tenon {

// Passes everything on to `base`. Actions are recorded by the profiler of the session for which
// the thread works, or by `profiler` outside of such work, if that profiler records at `level`.
class TracedAllocator final : public StreamAllocator {
 public:
  // `provider` owns the memory; `profiler` is the session's, or null. An arena asks this allocator
  // for its regions if `feeds_arena`, so the actions are called arena_extend and arena_shrink.
  TracedAllocator(std::shared_ptr<Allocator> base, std::string provider, MemoryEvents level,
                  bool feeds_arena, std::shared_ptr<Profiler> profiler);

  void* Allocate(size_t bytes) override;
  void* AllocateOn(size_t bytes, StreamOrder& stream) override;
  void ReleaseStream(const StreamOrder& stream) override;
  void Free(void* block) override;
  const MemoryInfo& info() const override { return base_->info(); }
  AllocatorStats Stats() const override { return base_->Stats(); }
  bool CanShrink() const override { return base_->CanShrink(); }
  Status Shrink() override { return base_->Shrink(); }

 private:
  Profiler* FindProfiler() const;
  RunMeter* FindMeter() const;
  // A block for `stream`, which may be null.
  void* TakeBlock(size_t bytes, StreamOrder* stream);
  void* TakeTraced(size_t bytes, StreamOrder* stream);
  // Records the event, if there is memory for it.
  void TryRecord(Profiler& profiler, const char* action, int64_t start, const void* block,
                 size_t bytes);
  void Record(Profiler& profiler, const char* action, int64_t start, const void* block,
              size_t bytes);

  const std::shared_ptr<Allocator> base_;
  StreamAllocator* const base_on_streams_;  // base_, or null if it does not distinguish streams
  const std::string provider_;
  const MemoryEvents level_;
  const bool feeds_arena_;
  const std::shared_ptr<Profiler> profiler_;
  // Sizes of the blocks that were allocated while events were recorded.
  Mutex mutex_;
  std::unordered_map<const void*, size_t> sizes_;
  std::atomic<size_t> known_ = 0;  // size of sizes_
  std::atomic<uint64_t> in_use_ = 0, total_ = 0;
};

}  // namespace tenon
