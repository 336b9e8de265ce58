// Shared by the operators on sequences.
#pragma once

#include <memory>

#include "runtime/kernel_context.h"

namespace tenon {

// The one element of input `i`, an int32 or int64 tensor.
Result<int64_t> IntegerOf(KernelContext& context, size_t i);

// A position counted from the front, in a sequence of `size` elements: [-size, size) becomes
// [0, size); with `may_be_end` size is a position too. Error: kInvalidArgument for any other.
Result<size_t> NormalizePosition(int64_t position, size_t size, bool may_be_end);

// Checks that `element`, input `i`, is a tensor of the type of the sequence's elements.
Status CheckElement(const Sequence& sequence, const Value& element, size_t i);

// Input `i`, a sequence, for changes: itself if it has no other reader, else a copy.
std::shared_ptr<Sequence> SequenceToChange(KernelContext& context, size_t i);

}  // namespace tenon
