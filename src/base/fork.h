// Distinguishes a process from the one that it was forked from.
#pragma once

#include <cstdint>

namespace tenon {

// Another number in a child process that is forked after the first call. The state of a parent's
// threads and locks is unknown in its children. An object that has them keeps this number with
// them, and makes new ones if the number differs.
#if defined(__wasm__)
inline uint32_t ForkGeneration() { return 0; }  // there is no fork
#else
uint32_t ForkGeneration();
#endif

}  // namespace tenon
