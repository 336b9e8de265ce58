// Working in place: when an output of a step may take the memory of one of its inputs.
//
// The kernel says which input (KernelTraits::in_place_input, Kernel::InputToOverwrite). The memory
// must be of the kind that the output needs, no other input of the step may lie there, and no later
// step may read the input. What follows from the plan alone is found once, when the plan is built.
// A run checks the rest: whether the input is fetched in the region, whether nothing else uses its
// memory (by the memory plan or the count of its owners), and whether the output fits.
#pragma once

#include "runtime/plan.h"
#include "tensor/tensor.h"

namespace tenon {

// Sets Plan::in_place, Plan::is_last_read and the steps' ranges in them. The rest of the plan must
// be complete.
void FindInPlace(Plan& plan);

// Whether a tensor of this type and shape can lie in the memory of `input`.
bool FitsInto(const Tensor& input, DataType type, const Shape& shape);

}  // namespace tenon
