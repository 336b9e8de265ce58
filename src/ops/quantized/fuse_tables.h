// Functions of quantized tensors that depend on one element.
#pragma once

#include "ir/graph.h"

namespace tenon {

// Replaces activations of int8 and uint8 tensors whose scales are constants, and sums and products
// of such functions of the same tensor, as x * sigmoid(x), by com.tenon QLinearTable, which looks
// the bytes up, in `graph` and its subgraphs. The results stay the same in bits.
//
//   QLinearTable(X, table)   table: 256 bytes of Y's type, the one for X's byte b at index b
void FuseTables(Graph& graph, int32_t provider);

}  // namespace tenon
