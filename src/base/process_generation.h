// Tells a process from the one that it was forked from.
#pragma once

#include <cstdint>

namespace tenon {

// Another number in a child that is forked after the first call. Threads and locks of a parent are
// in no known state in its children: what has them keeps this number with them, and makes new ones
// where it differs.
#if defined(__wasm__)
inline uint32_t ProcessGeneration() { return 0; }  // there is no fork
#else
uint32_t ProcessGeneration();
#endif

}  // namespace tenon
