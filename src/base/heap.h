// The C library's heap.
#pragma once

#include <cstdlib>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace tenon {

// Returns freed memory, which the C library keeps for later requests, to the system. Takes
// milliseconds; other threads may wait for the heap meanwhile.
inline void GiveFreedMemoryBack() {
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

}  // namespace tenon
