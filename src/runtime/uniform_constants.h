// Constants whose elements are all equal, such as ConstantOfShape makes.
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

// Lets constants of the same value lie in the same memory: models whose weights were removed have
// hundreds of constants of one value. Not thread-safe; the constants outlive it.
class UniformConstants {
 public:
  // Fills a tensor of the constant's type and of any shape with its value.
  using Fill = FunctionRef<Status(Tensor tensor)>;

  // A read-only constant of `shape`, in memory of its own from `allocator` unless one of the same
  // value is found or can be repeated. Errors: a bad shape, no memory, those of `fill`.
  Result<Tensor> Make(DataType type, const Shape& shape,
                      const std::shared_ptr<Allocator>& allocator, Fill fill);

 private:
  // The first bytes: a whole number of elements of any type.
  using Start = std::array<std::byte, 16>;
  struct Held {
    Start start;
    // Size of the largest constant in memory of its own.
    size_t bytes = 0;
    std::shared_ptr<void> memory;
    // The block that larger constants repeat, each under its own addresses, which are freed with
    // it.
    std::unique_ptr<RepeatedBlock> block;
  };

  Held& Find(const Start& start);

  std::vector<Held> held_;
};

}  // namespace tenon
