// Blocks of memory from the C library.
#pragma once

#include <cstddef>

#include "base/huge_pages.h"

namespace tenon {

// The alignment of blocks: a cache line.
constexpr size_t kSystemAlignment = 64;

// At least `bytes` bytes; null if there is no such memory. Blocks of a huge page and more are
// aligned to huge pages. Freed with std::free. Thread-safe.
void* AllocateSystemMemory(size_t bytes, HugePages when);

}  // namespace tenon
