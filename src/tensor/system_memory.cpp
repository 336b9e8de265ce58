#include "tensor/system_memory.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>  // posix_memalign besides the standard's

namespace tenon {

void* AllocateSystemMemory(size_t bytes, HugePages when) {
  constexpr size_t kLine = kSystemAlignment;
  if (bytes > SIZE_MAX - kLine) return nullptr;
  if (bytes < kHugePageBytes) {
    const size_t whole_lines = std::max<size_t>((bytes + kLine - 1) / kLine, 1);
    return std::aligned_alloc(kLine, whole_lines * kLine);
  }
  void* block = nullptr;
  if (posix_memalign(&block, kHugePageBytes, bytes) != 0) return nullptr;
  PreferHugePages(block, bytes, when);
  return block;
}

}  // namespace tenon
