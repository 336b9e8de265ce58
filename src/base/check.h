// Checks for our own mistakes. Mistakes of a model or a caller get a Status instead.
#pragma once

namespace tenon::internal {

// Writes the condition and its place to stderr, and ends the process.
[[noreturn]] void CheckFailed(const char* condition, const char* file, int line);

}  // namespace tenon::internal

// TENON_DCHECK(condition) ends the process if the condition does not hold, in builds with
// TENON_DCHECKS: the presets debug, asan, tsan and fuzz. Other builds compile it and never run it.
#if defined(TENON_DCHECKS)
#define TENON_DCHECK(condition)       \
  ((condition) ? static_cast<void>(0) \
               : ::tenon::internal::CheckFailed(#condition, __FILE__, __LINE__))
#else
#define TENON_DCHECK(condition) static_cast<void>(sizeof(static_cast<bool>(condition)))
#endif
