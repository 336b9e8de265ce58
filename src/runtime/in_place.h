// Working in place: when an output of a step may take the memory of one of its inputs.
//
// The kernel says which input (KernelTraits::in_place_input, Kernel::InputToOverwrite). The memory
// must be the output's kind of memory, no other input of the step may lie there, and nobody may
// need the input afterwards. All that follows from the plan alone is found once, when the plan is
// built. What remains to be seen is whether the input is fetched in the region that runs, whether
// its memory is its own, which the memory plan knows or the count of its owners tells, and whether
// the output fits.
#pragma once

#include "runtime/plan.h"
#include "tensor/tensor.h"

namespace tenon {

// Sets Plan::in_place, Plan::is_last_read and the ranges of the steps. The rest of the plan is
// done.
void FindInPlace(Plan& plan);

// Whether a tensor of this type and shape can lie in the memory of `input`.
bool FitsInto(const Tensor& input, DataType type, const Shape& shape);

}  // namespace tenon
