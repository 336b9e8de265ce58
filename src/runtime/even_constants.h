// Constants whose elements are all the same, such as ConstantOfShape makes.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "base/function_ref.h"
#include "base/status.h"
#include "tensor/allocator.h"
#include "tensor/tensor.h"

namespace tenon {

// Lets constants of the same value lie in the same memory: models that were emptied of their
// weights have hundreds of one value. Not thread-safe; what it made outlives it.
class EvenConstants {
 public:
  // A constant of `shape`, in memory of its own from `allocator` unless it is found or repeated.
  // `fill` writes the elements of a tensor of `type` and of any shape, all with the same value.
  // Nobody may write the result. Errors: a bad shape, no memory, those of `fill`.
  Result<Tensor> Make(DataType type, const Shape& shape,
                      const std::shared_ptr<Allocator>& allocator,
                      FunctionRef<Status(Tensor tensor)> fill);

 private:
  // The first bytes: any whole number of elements of any type.
  using Pattern = std::array<std::byte, 16>;
  struct Held {
    Pattern pattern;
    size_t bytes = 0;
    std::shared_ptr<const void> memory;
  };

  std::vector<Held> held_;
};

}  // namespace tenon
