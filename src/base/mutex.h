// Locks, for rooms above base: the one place that changes on a platform without threads.
#pragma once

#if defined(__wasm__)
#include "base/mutex_inline.h"
#else

#include <mutex>

namespace tenon {

using Mutex = std::mutex;
using MutexLock = std::lock_guard<std::mutex>;
// A lock that may be taken later, or not at all.
using DeferredLock = std::unique_lock<std::mutex>;
using std::defer_lock;

}  // namespace tenon

#endif
