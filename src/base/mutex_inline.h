// Locks where there are no threads, as in WebAssembly: nothing to wait for. The C++ library there
// has not even std::lock_guard.
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
  DeferredLock(Mutex&, DeferLock) {}
  void lock() {}
};

}  // namespace tenon
