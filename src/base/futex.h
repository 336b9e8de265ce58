// Sleeping on a 32-bit word and waking its sleepers.
#pragma once

#include <atomic>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#endif

namespace tenon {

#if defined(__wasm__)
// FutexWait, except that the thread of a page, which must not sleep, returns at once.
void WaitOnHost(const std::atomic<uint32_t>& word, uint32_t expected);
#endif

// Sleeps until woken, unless `word` no longer holds `expected`. May return early for no reason:
// the caller checks its condition again.
inline void FutexWait(const std::atomic<uint32_t>& word, uint32_t expected) {
#if defined(__linux__)
  static_assert(sizeof(word) == sizeof(uint32_t));
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, expected, nullptr, nullptr, 0);
#elif defined(__wasm__)
  WaitOnHost(word, expected);
#else
  word.wait(expected, std::memory_order_seq_cst);
#endif
}

// Wakes at most `count` threads that sleep on `word`; on systems other than Linux, all of them if
// count > 1. Never reads the word.
inline void FutexWake(std::atomic<uint32_t>& word, uint32_t count) {
#if defined(__linux__)
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, std::min<uint32_t>(count, INT_MAX), nullptr,
          nullptr, 0);
#elif defined(__wasm__)
  __builtin_wasm_memory_atomic_notify(reinterpret_cast<int*>(&word), count);
#else
  if (count > 1) {
    word.notify_all();
  } else {
    word.notify_one();
  }
#endif
}

}  // namespace tenon
