// How an arena grows and shrinks: the settings of OrtArenaCfg.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "base/string_map.h"

namespace tenon {

struct ArenaConfig {
  enum class Extend : int32_t { kNextPowerOfTwo = 0, kSameAsRequested = 1 };

  // Most bytes to hold from the device; SIZE_MAX: no limit.
  size_t max_bytes = SIZE_MAX;
  Extend extend = Extend::kNextPowerOfTwo;
  // Bytes of the first region.
  size_t initial_chunk = size_t{1} << 20;
  // A free chunk is split if so many bytes remain.
  size_t max_dead_bytes = size_t{128} << 20;
  // Bytes of the first region after a shrink.
  size_t initial_growth_chunk = size_t{2} << 20;
  // Regions do not grow beyond this, except for a request that is larger.
  size_t max_extend = size_t{1} << 30;
  // Whether regions without used chunks are given back before the arena grows. Of requests that
  // repeat, the largest ones then decide what it holds. Not a setting of OrtArenaCfg.
  bool shrinks_first = false;
};

// From entries "arena.max_mem", "arena.extend_strategy", "arena.initial_chunk_size_bytes",
// "arena.max_dead_bytes_per_chunk", "arena.initial_growth_chunk_size_bytes" and
// "arena.max_power_of_two_extend_bytes", whose numbers are decimal, whatever the locale; -1, and 0
// for max_mem, is the default. Other keys are ignored. Error: kInvalidArgument naming key and
// value.
Result<ArenaConfig> ArenaConfigOf(const StringMap& options);

}  // namespace tenon
