// Sparse constants as the dense tensors that they stand for.
#pragma once

#include "ir/graph.h"

namespace tenon {

// The tensor whose elements are those of `sparse` at their places, and zero or "" elsewhere. The
// format is kCoo, and the indices have been checked, as they are when a model is read. Error: no
// memory.
Result<Tensor> DenseOf(const SparseTensor& sparse);

// Replaces the sparse initializers of a graph and its subgraphs, and the values of its Constant
// nodes that are sparse, by dense ones: nodes take nothing else, whatever form a model stores.
// Error: kInvalidGraph or no memory, naming the value.
Status MakeConstantsDense(Graph& graph);

}  // namespace tenon
