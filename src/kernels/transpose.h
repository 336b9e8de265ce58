// Transpose-13 and every other permutation of axes.
#pragma once

#include <cstddef>
#include <span>

#include "base/status.h"
#include "kernels/copy.h"

namespace tenon::kernels {

// A plan for RunCopy: axis i of the dense result is axis permutation[i] of the dense input.
// element_size is 1, 2, 4, 8 or 16 bytes.
// errors   kInvalidArgument  not a permutation of the axes, or rank above kMaxCopyRank
Result<CopyPlan> MakeTransposePlan(std::span<const size_t> shape,
                                   std::span<const size_t> permutation, size_t element_size);

}  // namespace tenon::kernels
