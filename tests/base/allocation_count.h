// Counts heap allocations, for tests that promise none. A program that includes this links
// allocation_count.cpp, which replaces the global operator new.
#pragma once

#include <cstddef>

namespace tenon {

// Calls of operator new that the calling thread has made so far.
size_t AllocationsOnThisThread();

}  // namespace tenon
