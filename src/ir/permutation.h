// Orders of axes, as Transpose has them: axis i of the result is axis permutation[i] of the input.
#pragma once

#include "ir/graph.h"

namespace tenon {

using Permutation = std::vector<int64_t>;

// That of a Transpose whose input has `rank` axes, by default the reversal; empty if it is none.
Permutation PermutationOf(const Node& transpose, size_t rank);

// What undoes it.
Permutation Inverse(const Permutation& permutation);

// First `inner`, then `outer`; both are of one rank.
Permutation Composed(const Permutation& inner, const Permutation& outer);

// Images with their channels as the last axis from such with their channels as axis 1, and back.
Permutation ToChannelsLast(size_t rank);
Permutation ToChannelsFirst(size_t rank);

bool IsIdentity(const Permutation& permutation);

}  // namespace tenon
