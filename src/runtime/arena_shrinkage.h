// Finds the arenas that give back cached memory after a run.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"
#include "base/string_map.h"
#include "runtime/plan.h"

namespace tenon {

// The allocators that the run entry "memory.enable_memory_arena_shrinkage" names, such as
// "cpu:0;gpu:0"; none without the entry. They live as long as `locations`. Error: kInvalidArgument
// for an entry that is not of this form, and for a device without an allocator or with one that
// cannot shrink.
Result<std::vector<Allocator*>> ArenasToShrink(const StringMap& config,
                                               std::span<const Location> locations);

}  // namespace tenon
