// Moves quantized convolutions and the nodes around them into the channels-last layout (NHWC).
#pragma once

#include "ir/graph.h"

namespace tenon {

// Where the machine has a kernel for them (kernels/conv/conv_int8_nhwc.h), converts the
// QLinearConvs of `provider` whose weights are constants to com.tenon NhwcQLinearConv:
//
//   NhwcQLinearConv   QLinearConv with X and Y [N, H, W, C]; W as there, int8 with zero point 0, or
//                     uint8 with 128; and a table (optional), as that of QLinearTable
//                     (ops/quantized/fuse_tables.h), in which the results are looked up
//
// and the pools, element-wise operators, concatenations, splits and resizes after them to their
// channels-last forms, in `graph` and its subgraphs; as UseLayout does.
void UseNhwcLayout(Graph& graph, int32_t provider);

}  // namespace tenon
