// Large memory in large pages: fewer page faults when it is first written, fewer TLB misses when it
// is read.
#pragma once

#include <cstddef>
#include <cstdint>

namespace tenon {

// When memory is made of huge pages.
enum class HugePages : uint8_t {
  kPreferred,  // whenever the system grants them
  kIfQuick,  // not for a while after one took longer than the small pages in its place: a host may
             // supply its virtual machine's memory when that is first written, in small pieces,
             // and small pages are more often of memory that was in use before
};

// The size of a huge page, which is also the alignment that such memory needs.
constexpr size_t kHugePageBytes = size_t{2} << 20;

// Asks the system to use huge pages for the whole huge pages in [begin, begin + bytes). This is
// only advice: the memory works even if the system ignores it. kIfQuick: the memory has no contents
// yet; one page of it is written.
void PreferHugePages(void* begin, size_t bytes, HugePages when);

// Addresses for `bytes`, a multiple of 64 KiB, aligned to kHugePageBytes. Each huge page takes
// memory when it is first written. Null if the system cannot do it, and in sanitizer builds, which
// track blocks.
void* ReserveHugePages(size_t bytes, HugePages when);
// Frees what ReserveHugePages returned.
void ReturnHugePages(void* begin, size_t bytes);
// Releases the memory of the pages that lie wholly in reserved bytes, which may be written again,
// or in the bytes of a mapped file, which are read from it again.
void ReleaseWholePages(void* begin, size_t bytes);
// Keeps released pages from getting memory again: Linux in time makes huge pages of the small ones
// in [begin, begin + bytes) otherwise, which ReserveHugePages returned. Its huge pages stay.
void LeavePagesSmall(void* begin, size_t bytes);

}  // namespace tenon
