// Memory in which one block of bytes repeats, at the cost of that block.
#pragma once

#include <cstddef>
#include <memory>

#include "base/function_ref.h"

namespace tenon {

// Memory of fewer bytes is filled faster than it is mapped.
constexpr size_t kLeastRepeated = size_t{1} << 20;

// The length of the block that suits memory of `bytes` bytes: a power of two of at least 256 KiB.
size_t RepeatedPeriod(size_t bytes);

// A block that can be mapped any number of times. Immutable.
class RepeatedBlock {
 public:
  virtual ~RepeatedBlock() = default;

  virtual size_t period() const = 0;
  // Read-only memory of `bytes` bytes in which the block repeats, every address backed by the same
  // few pages; it outlives the block. Aligned to pages. Null where the system cannot do it.
  virtual std::shared_ptr<const void> Map(size_t bytes) const = 0;
};

// A block of `period` bytes, from RepeatedPeriod, that `fill` writes. Null where the system cannot
// do it; `fill` may have been called nonetheless.
std::unique_ptr<RepeatedBlock> MakeRepeatedBlock(size_t period,
                                                 FunctionRef<void(std::byte* block)> fill);

}  // namespace tenon
