#include "base/huge_pages.h"

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace tenon {

void PreferHugePages([[maybe_unused]] void* begin, [[maybe_unused]] size_t bytes) {
#if defined(__linux__)
  // A page that is only partly asked for stays small, so that nobody pays for memory unasked.
  madvise(begin, bytes / kHugePageBytes * kHugePageBytes, MADV_HUGEPAGE);
#endif
}

}  // namespace tenon
