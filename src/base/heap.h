// The C library's heap.
#pragma once

#include <cstdlib>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace tenon {

// Gives the system what was freed and what the C library keeps for later requests. Takes
// milliseconds; other threads may wait for the heap meanwhile.
inline void GiveFreedMemoryBack() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace tenon
