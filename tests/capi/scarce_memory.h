// Makes requests for memory fail. A program that includes this links scarce_memory.cpp, which
// replaces the global operator new and, on Linux, the C library's functions for large blocks.
#pragma once

#include <cstddef>

namespace tenon::test {

// Which requests fail, of all threads together.
enum class Scarcity {
  kOnce,     // one of them
  kFromNow,  // that one and all later ones
};

// From now on requests are counted, from 1. Request `first` fails; 0: none does.
void BeginScarcity(size_t first, Scarcity scarcity);
// Ends it. Returns how many requests there were.
size_t EndScarcity();

// How many blocks there are now.
size_t LiveBlocks();

}  // namespace tenon::test
