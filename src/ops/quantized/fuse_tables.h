// Functions of quantized tensors that depend on one element.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Replaces what depends on one element of one int8 or uint8 tensor alone by com.tenon QLinearTable,
// which looks the bytes up, in `graph` and its subgraphs: activations of quantized tensors, sums
// and products of such functions, as x * sigmoid(x), and what is computed in floats between a
// DequantizeLinear and a QuantizeLinear, as a GELU of several operators. Scales and other operands
// are constants of one element. The nodes' own kernels make the tables, so that the results stay
// the same in bits. Returns how many tables were made.
//
//   QLinearTable(X, table)   table: 256 bytes of Y's type, the one for X's byte b at index b
size_t FuseTables(Graph& graph, int32_t provider);

}  // namespace tenon
