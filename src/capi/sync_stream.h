// OrtSyncStream: a stream that clients know too.
#pragma once

#include <onnxruntime_ep_c_api.h>

#include <atomic>
#include <map>

#include "base/mutex.h"
#include "runtime/stream.h"

struct OrtSyncStream : tenon::Stream {
  // The provider's own object; null if this library made the stream.
  virtual OrtSyncStreamImpl* impl() const { return nullptr; }

  // How often other work was told to wait for this stream so far.
  uint64_t sync_id() const { return sync_id_.load(std::memory_order_relaxed); }
  uint64_t NextSyncId() { return ++sync_id_; }
  // The producer's number at this stream's last wait for it; 0: it never waited.
  uint64_t LastWaitFor(const OrtSyncStream& producer) const {
    const tenon::MutexLock lock(mutex_);
    const auto found = waits_.find(&producer);
    return found == waits_.end() ? 0 : found->second;
  }
  void RecordWaitFor(const OrtSyncStream& producer, uint64_t id) {
    const tenon::MutexLock lock(mutex_);
    waits_[&producer] = id;
  }

 private:
  std::atomic<uint64_t> sync_id_ = 0;
  mutable tenon::Mutex mutex_;
  std::map<const OrtSyncStream*, uint64_t> waits_;
};
