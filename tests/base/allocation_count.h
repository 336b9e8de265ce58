// Counts heap allocations, for tests that promise none. A program that includes this links
// allocation_count.cpp, which replaces the global operator new.
#pragma once

#include <cstddef>

namespace tenon {

// The number of the calling thread's calls so far of operator new or, on Linux, of the C library's
// functions for aligned memory.
size_t AllocationsOnThisThread();

}  // namespace tenon
