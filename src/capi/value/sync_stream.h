// OrtSyncStream: a stream with a handle for clients.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "runtime/stream.h"

struct OrtSyncStream : tenon::Stream {
  // The provider's own object; null if this library made the stream.
  virtual OrtSyncStreamImpl* impl() const { return nullptr; }

  // How often other work has waited for this stream so far.
  uint64_t sync_id() const override { return sync_id_.load(std::memory_order_relaxed); }
  uint64_t NextSyncId() { return ++sync_id_; }
  // The producer's number at this stream's last wait for it; 0: it never waited.
  uint64_t WaitedFor(const tenon::StreamOrder& producer) const override {
    const auto* const stream = dynamic_cast<const OrtSyncStream*>(&producer);
    if (stream == nullptr) return 0;
    const tenon::MutexLock lock(mutex_);
    const auto found = waits_.find(stream->number_);
    return found == waits_.end() ? 0 : found->second;
  }
  void RecordWaitFor(const OrtSyncStream& producer, uint64_t id) {
    const tenon::MutexLock lock(mutex_);
    waits_[producer.number_] = id;
  }

  // `allocator` gives blocks to the stream, and is told when it ends.
  void AddAllocator(const std::shared_ptr<tenon::StreamAllocator>& allocator) {
    const tenon::MutexLock lock(mutex_);
    const bool is_known = std::any_of(allocators_.begin(), allocators_.end(), [&](auto& known) {
      return !known.owner_before(allocator) && !allocator.owner_before(known);
    });
    if (!is_known) allocators_.push_back(allocator);
  }

 protected:
  // For destructors, while the stream is still complete.
  void LeaveAllocators() {
    for (const auto& known : allocators_) {
      if (const auto allocator = known.lock()) allocator->ReleaseStream(*this);
    }
    allocators_.clear();
  }

 private:
  // Unique among all streams of the process, unlike the address.
  static uint64_t NextNumber() {
    static std::atomic<uint64_t> last = 0;
    return ++last;
  }

  const uint64_t number_ = NextNumber();
  std::atomic<uint64_t> sync_id_ = 0;
  mutable tenon::Mutex mutex_;
  std::map<uint64_t, uint64_t> waits_;  // by the producer's number
  std::vector<std::weak_ptr<tenon::StreamAllocator>> allocators_;
};
