// Locks, for rooms above base: the one place that would change on a platform without threads.
#pragma once

#include <mutex>

namespace tenon {

using Mutex = std::mutex;
using MutexLock = std::lock_guard<std::mutex>;
// A lock that may be taken later, or not at all.
using DeferredLock = std::unique_lock<std::mutex>;

}  // namespace tenon
