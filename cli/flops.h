// The arithmetic of a node, and the bytes that it moves.
#pragma once

#include <string>
#include <vector>

#include "trace.h"

namespace tenon::cli {

// Additions and multiplications of one run of a matrix product, convolution, attention or recurrent
// layer, fused or not, from the shapes of its tensors. 0 for all other operators, which are limited
// by memory.
double FlopsOf(const std::string& op_type, const std::vector<TensorShape>& inputs,
               const std::vector<TensorShape>& outputs);

// The bytes that one run reads and writes, from those of its inputs and outputs. Some operators
// read only as much of an input as they write.
double BytesMoved(const std::string& op_type, double inputs, double outputs);

}  // namespace tenon::cli
