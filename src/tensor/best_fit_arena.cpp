#include "tensor/best_fit_arena.h"

#include <algorithm>

#include "base/arithmetic.h"

namespace tenon {

BestFitArena::BestFitArena(std::shared_ptr<Allocator> device, const ArenaConfig& config)
    : device_(std::move(device)), config_(config), next_region_(config.initial_chunk) {}

BestFitArena::~BestFitArena() {
  for (const Region& region : regions_) device_->Free(region.memory);
  for (const auto& [block, bytes] : reserved_) device_->Free(block);
}

// Bin i holds chunks of at least 256 << i bytes.
size_t BestFitArena::BinOf(size_t bytes) {
  size_t bin = 0;
  while (bin + 1 < kBins && bytes >> (9 + bin) != 0) ++bin;
  return bin;
}

int32_t BestFitArena::NewChunk() {
  if (unused_chunks_.empty()) {
    chunks_.emplace_back();
    return static_cast<int32_t>(chunks_.size() - 1);
  }
  const int32_t chunk = unused_chunks_.back();
  unused_chunks_.pop_back();
  chunks_[chunk] = Chunk();
  return chunk;
}

void BestFitArena::PutInBin(int32_t chunk) {
  const Chunk& c = chunks_[chunk];
  bins_[BinOf(c.bytes)].emplace(c.bytes, c.memory, chunk);
}

void BestFitArena::TakeFromBin(int32_t chunk) {
  const Chunk& c = chunks_[chunk];
  bins_[BinOf(c.bytes)].erase({c.bytes, c.memory, chunk});
}

bool BestFitArena::MayGive(const Chunk& chunk, const StreamOrder* stream) const {
  if (chunk.stream == nullptr || chunk.stream == stream) return true;
  return stream != nullptr && stream->WaitedFor(*chunk.stream) > chunk.sync_id;
}

// The smallest chunk that fits, taken from its bin; kNone if there is none.
int32_t BestFitArena::FindFree(size_t bytes, const StreamOrder* stream) {
  for (size_t bin = BinOf(bytes); bin < kBins; ++bin) {
    for (auto entry = bins_[bin].lower_bound({bytes, nullptr, kNone}); entry != bins_[bin].end();
         ++entry) {
      const int32_t chunk = std::get<2>(*entry);
      if (!MayGive(chunks_[chunk], stream)) continue;
      bins_[bin].erase(entry);
      return chunk;
    }
  }
  return kNone;
}

// Takes a region with room for `bytes` from the device and puts it into its bin.
Status BestFitArena::Extend(size_t bytes) {
  if (config_.shrinks_first) ShrinkLocked();
  const size_t left = config_.max_bytes - stats_.total_allocated;
  if (bytes > left) {
    return Fail("the arena has no room for {} bytes: {} of {} are left", bytes, left,
                config_.max_bytes);
  }
  size_t size = bytes;
  if (config_.extend == ArenaConfig::Extend::kNextPowerOfTwo && bytes <= config_.max_extend) {
    size_t growth = std::min(std::max(next_region_, kGranule), config_.max_extend);
    while (growth < bytes) {
      growth = growth > config_.max_extend / 2 ? config_.max_extend : growth * 2;
    }
    next_region_ = std::min(growth, config_.max_extend / 2) * 2;
    size = std::min(growth, left);
  }
  constexpr size_t kLeastRegion = 8 << 10;
  void* memory = device_->Allocate(size);
  while (memory == nullptr) {
    const size_t smaller = (size - size / 10) / kGranule * kGranule;
    if (smaller >= size || smaller < bytes || smaller < kLeastRegion) {
      return Fail("the device has no room for {} bytes", bytes);
    }
    size = smaller;
    memory = device_->Allocate(size);
  }
  stats_.total_allocated += size;
  ++stats_.extensions;
  const int32_t chunk = NewChunk();
  Chunk& c = chunks_[chunk];
  c.memory = static_cast<std::byte*>(memory);
  c.bytes = size;
  regions_.push_back({c.memory, size, chunk});
  PutInBin(chunk);
  return OkStatus();
}

void BestFitArena::SplitIfWorthIt(int32_t chunk, size_t bytes) {
  const size_t rest = chunks_[chunk].bytes - bytes;
  if (rest == 0 || (rest < bytes && rest < config_.max_dead_bytes)) return;
  const int32_t second = NewChunk();
  Chunk& c = chunks_[chunk];
  Chunk& s = chunks_[second];
  s = c;
  s.memory = c.memory + bytes;
  s.bytes = rest;
  s.previous = chunk;
  s.next = c.next;
  if (s.next != kNone) chunks_[s.next].previous = second;
  c.next = second;
  c.bytes = bytes;
  PutInBin(second);
}

Result<void*> BestFitArena::TryAllocate(size_t bytes, const StreamOrder* stream) {
  if (bytes == 0) return nullptr;
  const std::optional<size_t> rounded = CheckedRoundUp<size_t>(bytes, kGranule);
  if (!rounded) return Fail("{} bytes are more than there can be", bytes);
  const MutexLock lock(mutex_);
  int32_t chunk = FindFree(*rounded, stream);
  if (chunk == kNone) {
    TENON_RETURN_IF_ERROR(Extend(*rounded));
    chunk = FindFree(*rounded, stream);
  }
  SplitIfWorthIt(chunk, *rounded);
  Chunk& c = chunks_[chunk];
  c.is_used = true;
  c.requested = bytes;
  c.stream = stream;
  used_[c.memory] = chunk;
  ++stats_.allocs;
  stats_.in_use += c.bytes;
  stats_.requested += bytes;
  stats_.max_in_use = std::max(stats_.max_in_use, stats_.in_use);
  stats_.max_alloc_size = std::max(stats_.max_alloc_size, c.bytes);
  return c.memory;
}

Result<void*> BestFitArena::Reserve(size_t bytes) {
  if (bytes == 0) return nullptr;
  const MutexLock lock(mutex_);
  const size_t left = config_.max_bytes - stats_.total_allocated;
  if (bytes > left) {
    return Fail("the arena has no room for {} bytes: {} of {} are left", bytes, left,
                config_.max_bytes);
  }
  void* block = device_->Allocate(bytes);
  if (block == nullptr) return Fail("the device has no room for {} bytes", bytes);
  reserved_[block] = bytes;
  ++stats_.reserves;
  ++stats_.allocs;
  stats_.in_use += bytes;
  stats_.requested += bytes;
  stats_.max_in_use = std::max(stats_.max_in_use, stats_.in_use);
  stats_.max_alloc_size = std::max(stats_.max_alloc_size, bytes);
  stats_.total_allocated += bytes;
  return block;
}

void BestFitArena::JoinNext(int32_t chunk) {
  Chunk& c = chunks_[chunk];
  const int32_t next = c.next;
  const Chunk& n = chunks_[next];
  c.bytes += n.bytes;
  c.sync_id = std::max(c.sync_id, n.sync_id);
  c.next = n.next;
  if (c.next != kNone) chunks_[c.next].previous = chunk;
  unused_chunks_.push_back(next);
}

int32_t BestFitArena::Merge(int32_t chunk) {
  const auto joins = [&](int32_t other) {
    return other != kNone && !chunks_[other].is_used &&
           chunks_[other].stream == chunks_[chunk].stream;
  };
  if (const int32_t next = chunks_[chunk].next; joins(next)) {
    TakeFromBin(next);
    JoinNext(chunk);
  }
  if (const int32_t previous = chunks_[chunk].previous; joins(previous)) {
    TakeFromBin(previous);
    JoinNext(previous);
    return previous;
  }
  return chunk;
}

void BestFitArena::Free(void* block) {
  if (block == nullptr) return;
  const MutexLock lock(mutex_);
  if (const auto reserved = reserved_.find(block); reserved != reserved_.end()) {
    stats_.in_use -= reserved->second;
    stats_.requested -= reserved->second;
    stats_.total_allocated -= reserved->second;
    reserved_.erase(reserved);
    device_->Free(block);
    return;
  }
  FreeLocked(block);
}

void BestFitArena::FreeLocked(void* block) {
  const auto used = used_.find(block);
  if (used == used_.end()) return;
  const int32_t chunk = used->second;
  used_.erase(used);
  Chunk& c = chunks_[chunk];
  c.is_used = false;
  c.sync_id = c.stream ? c.stream->sync_id() : 0;
  stats_.in_use -= c.bytes;
  stats_.requested -= c.requested;
  PutInBin(Merge(chunk));
}

void BestFitArena::ReleaseStream(const StreamOrder& stream) {
  const MutexLock lock(mutex_);
  for (const Region& region : regions_) {
    for (int32_t chunk = region.first; chunk != kNone; chunk = chunks_[chunk].next) {
      if (chunks_[chunk].stream == &stream) chunks_[chunk].stream = nullptr;
    }
    for (int32_t chunk = region.first; chunk != kNone; chunk = chunks_[chunk].next) {
      if (chunks_[chunk].is_used) continue;
      TakeFromBin(chunk);
      chunk = Merge(chunk);
      PutInBin(chunk);
    }
  }
}

Status BestFitArena::Shrink() {
  const MutexLock lock(mutex_);
  ShrinkLocked();
  return OkStatus();
}

void BestFitArena::ShrinkLocked() {
  const bool grows = config_.extend == ArenaConfig::Extend::kNextPowerOfTwo;
  const size_t before = regions_.size();
  size_t kept = grows ? std::min<size_t>(1, before) : 0;
  for (size_t i = kept; i < before; ++i) {
    const Region& region = regions_[i];
    bool is_used = false;
    for (int32_t chunk = region.first; chunk != kNone; chunk = chunks_[chunk].next) {
      is_used |= chunks_[chunk].is_used;
    }
    if (is_used) {
      regions_[kept++] = region;
      continue;
    }
    for (int32_t chunk = region.first; chunk != kNone; chunk = chunks_[chunk].next) {
      TakeFromBin(chunk);
      unused_chunks_.push_back(chunk);
    }
    device_->Free(region.memory);
    stats_.total_allocated -= region.bytes;
    --stats_.extensions;
  }
  regions_.resize(kept);
  if (kept < before) ++stats_.shrinkages;
  next_region_ = config_.initial_growth_chunk;
}

ArenaStats BestFitArena::arena_stats() const {
  const MutexLock lock(mutex_);
  return stats_;
}

AllocatorStats BestFitArena::Stats() const {
  const ArenaStats stats = arena_stats();
  AllocatorStats result;
  result.allocations = stats.allocs;
  result.bytes_in_use = stats.in_use;
  result.bytes_requested = stats.requested;
  result.peak_bytes_in_use = stats.max_in_use;
  result.bytes_reserved = stats.total_allocated;
  result.bytes_limit = config_.max_bytes == SIZE_MAX ? 0 : config_.max_bytes;
  return result;
}

}  // namespace tenon
