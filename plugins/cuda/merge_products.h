// Products of one matrix with several weights, as one.
#pragma once

#include "operators.h"

namespace cuda {

// Replaces MatMul (and MatMulNBits) nodes that multiply the same value by different constants, and
// the additions of constants that follow them, by one of each and a Split: queries, keys and values
// of attention, gates of feed-forward networks. The parts of a Split are views.
void MergeProducts(Graph& graph);

}  // namespace cuda
