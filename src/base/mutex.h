// Locks for the rooms above base, so that a platform without threads changes only this file.
#pragma once

#if defined(__wasm__)
#include "base/mutex_wasm.h"
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
