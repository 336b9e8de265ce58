// The idle frames of one plan.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "base/mutex.h"
#include "runtime/frame.h"

namespace tenon {

// Thread-safe. The plan outlives it.
class FramePool {
 public:
  explicit FramePool(const Plan& plan) : plan_(plan) {}

  std::unique_ptr<Frame> Take();
  // Drops the values of the frame and keeps it for a later run.
  void Return(std::unique_ptr<Frame> frame);
  // Frees the idle frames.
  void Drop();

 private:
  // How many idle frames are kept for later runs. More frames are made when more runs overlap.
  static constexpr size_t kMostIdleFrames = 4;

  const Plan& plan_;
  Mutex mutex_;
  std::array<std::unique_ptr<Frame>, kMostIdleFrames> idle_;
  size_t idle_count_ = 0;
};

// A frame that goes back to its pool, which outlives it.
class FrameLease {
 public:
  explicit FrameLease(FramePool& pool) : pool_(pool), frame_(pool.Take()) {}
  ~FrameLease() { pool_.Return(std::move(frame_)); }
  FrameLease(const FrameLease&) = delete;
  FrameLease& operator=(const FrameLease&) = delete;

  Frame& operator*() const { return *frame_; }
  Frame* operator->() const { return frame_.get(); }

 private:
  FramePool& pool_;
  std::unique_ptr<Frame> frame_;
};

}  // namespace tenon
