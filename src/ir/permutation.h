// Orders of axes in Transpose's form: axis i of the result is axis permutation[i] of the input.
#pragma once

#include "ir/graph.h"

namespace tenon {

using Permutation = std::vector<int64_t>;

// That of a Transpose whose input has `rank` axes, by default the reversal; empty if it is invalid.
Permutation PermutationOf(const Node& transpose, size_t rank);

// The inverse permutation.
Permutation Inverse(const Permutation& permutation);

// First `inner`, then `outer`; both are of one rank.
Permutation Composed(const Permutation& inner, const Permutation& outer);

// From NCHW to NHWC images, and back.
Permutation ToChannelsLast(size_t rank);
Permutation ToChannelsFirst(size_t rank);

bool IsIdentity(const Permutation& permutation);

}  // namespace tenon
