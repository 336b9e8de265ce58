// Counts heap allocations, for tests that promise none. A program that includes this links
// allocation_count.cpp, which replaces the global operator new.
#pragma once

#include <cstddef>

namespace tenon {

// How often the calling thread has called operator new or, on Linux, for aligned memory of the C
// library so far.
size_t AllocationsOnThisThread();

}  // namespace tenon
