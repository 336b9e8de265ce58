// Identifies the calling thread and its CPU.
#pragma once

#include <unistd.h>

#include <cstdint>

#if !defined(__wasm__)
#include <sched.h>
#include <sys/syscall.h>
#endif

namespace tenon {

#if defined(__wasm__)
// Threads have no numbers of their own, and there is no information about CPUs.
inline int64_t ThreadId() { return getpid(); }
inline int CurrentCpu() { return -1; }
#else
// The system's number of the calling thread.
inline int64_t ThreadId() {
  thread_local const auto id = static_cast<int64_t>(syscall(SYS_gettid));
  return id;
}
// The CPU that the calling thread runs on; -1 if unknown.
inline int CurrentCpu() { return sched_getcpu(); }
#endif

}  // namespace tenon
