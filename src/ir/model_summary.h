// Facts about a model that are known without running it: operators, parameters, memory.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "ir/model.h"
#include "ir/shape_context.h"

namespace tenon {

struct ModelSummary {
  struct Parameters {  // of the initializers, subgraphs included
    size_t tensors = 0;
    int64_t elements = 0;
    size_t bytes = 0;  // as stored; strings count with sizeof(std::string)
  };
  // The values between nodes, and the graph's inputs and outputs, that are alive at once if each
  // has memory of its own from its producer to its last consumer.
  struct Activations {
    size_t peak_bytes = 0;
    size_t unknown_values = 0;              // not counted: their type or shape is not known
    std::vector<std::string> assumed_dims;  // counted as 1, sorted
  };

  // How often an operator occurs, functions not expanded, subgraphs included.
  std::map<std::pair<std::string, std::string>, size_t> operators;  // {domain, op_type} -> count
  size_t nodes = 0;
  Parameters parameters;
  Activations activations;
  // The reason why the model cannot be run, or OK: the result of CheckModel or InferTypes.
  Status problem;
};

// Sizes of named dimensions. A dimension that graph inputs leave unnamed is "<input>.<axis>".
using DimSizes = std::map<std::string, int64_t, std::less<>>;

// Infers the types of the model's graph, and applies `sizes` to dimensions of graph inputs and
// outputs. Error: kInvalidArgument, a dimension that the model does not have or a negative size.
Result<ModelSummary> Summarize(Model& model, const ShapeFunctionTable& functions,
                               const DimSizes& sizes = {});

}  // namespace tenon
