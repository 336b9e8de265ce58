#include "runtime/frame_pool.h"

#include <utility>

namespace tenon {
std::unique_ptr<Frame> FramePool::Take() {
  {
    const MutexLock lock(mutex_);
    if (idle_count_ > 0) return std::move(idle_[--idle_count_]);
  }
  return std::make_unique<Frame>(plan_);
}

void FramePool::Return(std::unique_ptr<Frame> frame) {
  frame->Reset();
  const MutexLock lock(mutex_);
  if (idle_count_ < idle_.size()) idle_[idle_count_++] = std::move(frame);
}

void FramePool::Drop() {
  decltype(idle_) frames;  // freed without the lock
  const MutexLock lock(mutex_);
  frames.swap(idle_);
  idle_count_ = 0;
}

}  // namespace tenon
