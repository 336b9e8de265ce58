#include "runtime/frame_pool.h"

#include <utility>

namespace tenon {
namespace {

// How many idle frames are kept for later runs. More frames are made when more runs overlap.
constexpr size_t kMostIdleFrames = 4;

}  // namespace

std::unique_ptr<Frame> FramePool::Take() {
  {
    const MutexLock lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Frame> frame = std::move(idle_.back());
      idle_.pop_back();
      return frame;
    }
  }
  return std::make_unique<Frame>(plan_);
}

void FramePool::Return(std::unique_ptr<Frame> frame) {
  frame->Reset();
  const MutexLock lock(mutex_);
  if (idle_.size() < kMostIdleFrames) idle_.push_back(std::move(frame));
}

void FramePool::Drop() {
  std::vector<std::unique_ptr<Frame>> frames;  // freed without the lock
  const MutexLock lock(mutex_);
  frames.swap(idle_);
}

}  // namespace tenon
