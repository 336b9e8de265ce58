// Thread settings that an environment's and a session's options share.
#pragma once

#include <onnxruntime_c_api.h>

#include "base/status.h"
#include "base/thread_pool.h"

namespace tenon::capi {

inline Status CheckThreadCount(int count) {
  if (count >= 0) return OkStatus();
  return InvalidArgument("a number of threads is at least 0, got {}", count);
}

// Converts the client's functions to those of the thread pool. A handle is a pointer to an opaque
// struct there and a void pointer here; the calling conventions are the same.
inline decltype(ThreadCallbacks::create) CreateCallback(OrtCustomCreateThreadFn function) {
  return reinterpret_cast<decltype(ThreadCallbacks::create)>(
      reinterpret_cast<void (*)()>(function));
}
inline decltype(ThreadCallbacks::join) JoinCallback(OrtCustomJoinThreadFn function) {
  return reinterpret_cast<decltype(ThreadCallbacks::join)>(reinterpret_cast<void (*)()>(function));
}

}  // namespace tenon::capi
