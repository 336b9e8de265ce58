// Memory in which one block of bytes repeats, and which takes only the memory of that block.
#pragma once

#include <cstddef>
#include <memory>

#include "base/function_ref.h"

namespace tenon {

// Filling less memory than this is faster than mapping it.
constexpr size_t kLeastRepeated = size_t{1} << 20;

// The block length for memory of `bytes` bytes: a power of two of at least 256 KiB.
size_t RepeatedPeriod(size_t bytes);

// A block that can be mapped any number of times. Immutable.
class RepeatedBlock {
 public:
  virtual ~RepeatedBlock() = default;

  virtual size_t period() const = 0;
  // Read-only memory of `bytes` bytes in which the block repeats. All addresses share the same few
  // pages. It outlives the block and is aligned to pages. Null if the system cannot do it.
  virtual std::shared_ptr<const void> Map(size_t bytes) const = 0;
};

// A block of `period` bytes, from RepeatedPeriod, that `fill` writes. Null if the system cannot do
// it; `fill` may still have been called.
std::unique_ptr<RepeatedBlock> MakeRepeatedBlock(size_t period,
                                                 FunctionRef<void(std::byte* block)> fill);

}  // namespace tenon
