// Memory in which one block of bytes repeats, at the cost of that block.
#pragma once

#include <cstddef>
#include <memory>

#include "base/function_ref.h"

namespace tenon {

// Memory of fewer bytes is filled faster than it is mapped.
constexpr size_t kLeastRepeated = size_t{1} << 20;

// Read-only memory of `bytes` bytes, at least kLeastRepeated, in which the bytes that `fill` writes
// repeat, every address backed by the same few pages. The period that `fill` gets is a power of two
// of at least 256 KiB and below `bytes`; the memory is aligned to pages. Null where the system
// cannot do it; `fill` may have been called nonetheless.
std::shared_ptr<const void> RepeatMemory(size_t bytes,
                                         FunctionRef<void(std::byte* block, size_t period)> fill);

}  // namespace tenon
