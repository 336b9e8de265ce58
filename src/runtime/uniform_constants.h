// Constants whose elements are all the same, such as ConstantOfShape makes.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "base/repeated_memory.h"
#include "base/status.h"
#include "tensor/allocator.h"
#include "tensor/tensor.h"

namespace tenon {

// Lets constants of the same value lie in the same memory: models that were emptied of their
// weights have hundreds of one value. Not thread-safe; what it made outlives it.
class UniformConstants {
 public:
  // Writes the elements of a tensor of the constant's type and of any shape, all with its value.
  using Fill = FunctionRef<Status(Tensor tensor)>;

  // A constant of `shape`, in memory of its own from `allocator` unless one of the same value is
  // found or can be repeated. Nobody may write it. Errors: a bad shape, no memory, those of `fill`.
  Result<Tensor> Make(DataType type, const Shape& shape,
                      const std::shared_ptr<Allocator>& allocator, Fill fill);

 private:
  // The first bytes: a whole number of elements of any type.
  using Start = std::array<std::byte, 16>;
  struct Held {
    Start start;
    // The largest constant that lies in memory of its own.
    size_t bytes = 0;
    std::shared_ptr<void> memory;
    // What the larger ones repeat, each under its own addresses, which go when it goes.
    std::unique_ptr<RepeatedBlock> block;
  };

  Held& Find(const Start& start);

  std::vector<Held> held_;
};

}  // namespace tenon
