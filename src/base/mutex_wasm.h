// Locks in WebAssembly, whose C++ library has none. Threads that run at the same time work on one
// loop and hold a lock for a moment, so waiting is spinning: the thread of a page must not sleep. A
// thread may take a lock again that it holds, because a task runs in the thread that posts it.
#pragma once

#include <atomic>
#include <utility>

namespace tenon {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

  void lock() {
    const void* const me = &thread_;
    if (owner_.load(std::memory_order_relaxed) != me) {
      const void* nobody = nullptr;
      while (!owner_.compare_exchange_weak(nobody, me, std::memory_order_acquire)) {
        nobody = nullptr;
      }
    }
    ++depth_;
  }

  void unlock() {
    if (--depth_ == 0) owner_.store(nullptr, std::memory_order_release);
  }

 private:
  static inline thread_local constinit char thread_ = 0;  // whose address stands for its thread

  std::atomic<const void*> owner_ = nullptr;
  int depth_ = 0;  // of the owner
};

class MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) : mutex_(mutex) { mutex_.lock(); }
  ~MutexLock() { mutex_.unlock(); }
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

 private:
  Mutex& mutex_;
};

struct DeferLock {};
inline constexpr DeferLock defer_lock;

class DeferredLock {
 public:
  DeferredLock() = default;
  explicit DeferredLock(Mutex& mutex) : DeferredLock(mutex, defer_lock) { lock(); }
  DeferredLock(Mutex& mutex, DeferLock) : mutex_(&mutex) {}
  DeferredLock(DeferredLock&& other) noexcept
      : mutex_(other.mutex_), is_locked_(std::exchange(other.is_locked_, false)) {}
  DeferredLock& operator=(DeferredLock&& other) noexcept {
    std::swap(mutex_, other.mutex_);
    std::swap(is_locked_, other.is_locked_);
    return *this;
  }
  ~DeferredLock() {
    if (is_locked_) mutex_->unlock();
  }

  void lock() {
    mutex_->lock();
    is_locked_ = true;
  }

 private:
  Mutex* mutex_ = nullptr;
  bool is_locked_ = false;
};

}  // namespace tenon
