// Which thread is this?
#pragma once

#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>

namespace tenon {

// The system's number of the calling thread.
inline int64_t ThreadId() {
  thread_local const auto id = static_cast<int64_t>(syscall(SYS_gettid));
  return id;
}

}  // namespace tenon
