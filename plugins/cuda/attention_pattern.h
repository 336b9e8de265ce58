// Attention as exporters write it: products with a softmax between them.
#pragma once

#include "operators.h"

namespace cuda {

// Replaces softmax(q k' * scale + mask) v by one node FusedAttention of domain "tenon", with inputs
// q, k', v and the mask, and attributes `scale` and `masked` (the score where a mask of type bool
// is false), wherever nothing else reads the values between and the kernel has the type and the
// depth.
void FuseAttention(Graph& graph);

}  // namespace cuda
