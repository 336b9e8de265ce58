// Locks without threads, as in WebAssembly: they never wait. The C++ library there lacks even
// std::lock_guard.
#pragma once

namespace tenon {

class Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
};

class MutexLock {
 public:
  explicit MutexLock(Mutex&) {}
};

struct DeferLock {};
inline constexpr DeferLock defer_lock;

class DeferredLock {
 public:
  DeferredLock() = default;
  explicit DeferredLock(Mutex&) {}
  DeferredLock(Mutex&, DeferLock) {}
  void lock() {}
};

}  // namespace tenon
