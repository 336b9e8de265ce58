// How much arithmetic a node does, and how much it moves.
#pragma once

#include <string>
#include <vector>

#include "trace.h"

namespace tenon::cli {

// Additions and multiplications of one run of a matrix product, convolution, attention or recurrent
// layer, fused or not, by the shapes of its tensors; 0 for all others, whose limit is memory.
double FlopsOf(const std::string& op_type, const std::vector<TensorShape>& inputs,
               const std::vector<TensorShape>& outputs);

// The bytes that one run reads and writes, given those of its inputs and outputs: some operators
// read no more of an input than they write.
double BytesMoved(const std::string& op_type, double inputs, double outputs);

}  // namespace tenon::cli
