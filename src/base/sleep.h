// Suspends the calling thread without the C++ library's threads, which some platforms lack.
#pragma once

#include <time.h>

#include <chrono>

namespace tenon {

// Returns no sooner than after `time`, unless a signal arrives. `time` is below a second.
inline void SleepFor(std::chrono::nanoseconds time) {
  const timespec rest = {.tv_sec = 0, .tv_nsec = static_cast<long>(time.count())};
  nanosleep(&rest, nullptr);
}

}  // namespace tenon
