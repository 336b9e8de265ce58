// Converts sparse constants to dense tensors.
#pragma once

#include "ir/graph.h"

namespace tenon {

// The tensor with the elements of `sparse` at their indices, and zero or "" elsewhere. The format
// is kCoo. The indices were checked when the model was read. Error: no memory.
Result<Tensor> DenseOf(const SparseTensor& sparse);

// Replaces the sparse initializers of a graph and its subgraphs, and the sparse values of its
// Constant nodes, by dense ones, because nodes accept only these. A constant that the graph
// declares as a sparse output becomes or stays a sparse initializer. Error: kInvalidGraph or no
// memory, naming the value.
Status MakeConstantsDense(Graph& graph);

// The indices of a sparse tensor as int64, as which ONNX stores them. ONNX Runtime uses the
// narrowest type that holds them. Other tensors are returned as they are.
Result<Tensor> WidenIndices(Tensor indices);

}  // namespace tenon
