// An arena over any allocator, whose memory it never touches: best fit with coalescing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "base/status.h"
#include "tensor/arena_config.h"
#include "tensor/stream_allocator.h"

namespace tenon {

struct ArenaStats {
  size_t in_use = 0;           // bytes of blocks, as requested and rounded
  size_t requested = 0;        // bytes of the same blocks, not rounded
  size_t total_allocated = 0;  // bytes held from the device
  size_t max_in_use = 0;
  size_t max_alloc_size = 0;
  uint64_t allocs = 0;
  uint64_t reserves = 0;
  int64_t extensions = 0;  // regions alive
  uint64_t shrinkages = 0;
};

// Thread-safe. Requests are rounded up to 256 bytes. The first request takes the first memory from
// the device.
class BestFitArena final : public StreamAllocator {
 public:
  BestFitArena(std::shared_ptr<Allocator> device, const ArenaConfig& config);
  // Every block must have been freed, except those that outlive the process.
  ~BestFitArena() override;

  // A block for `stream` (null: for a caller who knows that no stream works on freed ones); null
  // for 0 bytes. A chunk on which another stream worked last is given only to streams that have
  // waited for that stream since the chunk was freed. Error: kFail with the numbers that do not
  // fit.
  Result<void*> TryAllocate(size_t bytes, const StreamOrder* stream = nullptr);
  // Allocates directly from the device, and frees directly to it.
  Result<void*> Reserve(size_t bytes);
  void ReleaseStream(const StreamOrder& stream) override;

  void* Allocate(size_t bytes) override {
    return TryAllocate(std::max<size_t>(bytes, 1)).value_or(nullptr);
  }
  void* AllocateOn(size_t bytes, StreamOrder& stream) override {
    return TryAllocate(std::max<size_t>(bytes, 1), &stream).value_or(nullptr);
  }
  void Free(void* block) override;
  const MemoryInfo& info() const override { return device_->info(); }
  AllocatorStats Stats() const override;
  // Gives regions without used chunks back; with growing regions the first one stays.
  bool CanShrink() const override { return true; }
  Status Shrink() override;

  ArenaStats arena_stats() const;
  size_t limit() const { return config_.max_bytes; }

 private:
  static constexpr size_t kGranule = 256;
  static constexpr size_t kBins = 21;
  static constexpr int32_t kNone = -1;

  // A part of a region: used, or free and in a bin.
  struct Chunk {
    std::byte* memory = nullptr;
    size_t bytes = 0;
    size_t requested = 0;                    // of its bytes, while it is used
    int32_t previous = kNone, next = kNone;  // neighbours in the region
    bool is_used = false;
    const StreamOrder* stream = nullptr;  // that worked on it last
    uint64_t sync_id = 0;                 // of the stream when it was freed
  };
  struct Region {
    std::byte* memory = nullptr;
    size_t bytes = 0;
    int32_t first = kNone;
  };
  using BinKey = std::tuple<size_t, std::byte*, int32_t>;  // bytes, memory, chunk

  static size_t BinOf(size_t bytes);
  int32_t NewChunk();
  void PutInBin(int32_t chunk);
  void TakeFromBin(int32_t chunk);
  bool MayGive(const Chunk& chunk, const StreamOrder* stream) const;
  int32_t FindFree(size_t bytes, const StreamOrder* stream);
  Status Extend(size_t bytes);
  void ShrinkLocked();
  void SplitIfWorthIt(int32_t chunk, size_t bytes);
  // Joins a free chunk, which is in no bin, with free neighbours of the same stream.
  int32_t Merge(int32_t chunk);
  void JoinNext(int32_t chunk);
  void FreeLocked(void* block);

  const std::shared_ptr<Allocator> device_;
  const ArenaConfig config_;
  mutable Mutex mutex_;
  std::vector<Chunk> chunks_;
  std::vector<int32_t> unused_chunks_;  // indices in chunks_
  std::vector<Region> regions_;
  std::set<BinKey> bins_[kBins];
  std::unordered_map<void*, int32_t> used_;
  std::unordered_map<void*, size_t> reserved_;
  size_t next_region_;
  ArenaStats stats_;
};

}  // namespace tenon
