// The operators that the provider has: those of codegen, and its own forms of them.
#pragma once

#include "../codegen/operators.h"

namespace cuda {

using namespace codegen;  // NOLINT

std::span<const Operator> ProductOperators();      // cuBLASLt
std::span<const Operator> ConvolutionOperators();  // cuDNN
std::span<const Operator> EpilogueOperators();     // what products and convolutions do on the way
std::span<const Operator> AttentionOperators();
std::span<const Operator> DecoderOperators();
std::span<const Operator> QuantizedOperators();

// Null if there is none.
const Operator* FindOperator(const Node& node);

// What kernels in OpenCL C begin with.
extern const char* const kPrelude;

}  // namespace cuda
