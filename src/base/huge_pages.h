// Large memory in large pages: fewer page faults where it is first written, fewer misses of the
// address cache where it is read.
#pragma once

#include <cstddef>

namespace tenon {

// The size of a huge page and the alignment that lets memory be made of them.
constexpr size_t kHugePageBytes = size_t{2} << 20;

// Asks the system to back the whole huge pages in [begin, begin + bytes) as such; `begin` is
// aligned to kHugePageBytes. Only advice: the system may not heed it, and the memory works either
// way.
void PreferHugePages(void* begin, size_t bytes);

// Addresses for `bytes`, aligned to kHugePageBytes, a multiple of it; each huge page takes memory
// when it is first written. Null where the system cannot, and where a sanitizer should see blocks.
void* ReserveHugePages(size_t bytes);
// Gives back what ReserveHugePages returned.
void ReturnHugePages(void* begin, size_t bytes);
// Lets go of the memory of the pages that lie wholly in reserved bytes, which may be written again,
// or in the bytes of a mapped file, which come from it again.
void ReleaseWholePages(void* begin, size_t bytes);

}  // namespace tenon
