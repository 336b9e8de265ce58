// Type and shape inference over a whole graph.
#pragma once

#include "ir/model.h"
#include "ir/shape_context.h"

namespace tenon {

struct InferenceOptions {
  // A contradiction between a declared and an inferred type is an error, not a warning to ignore.
  bool strict = false;
};

// Fills ValueInfo::type of every value that can be known from the graph's inputs, initializers and
// declared types, following the elements of small integer tensors through shape computations.
// Idempotent. Errors: kInvalidGraph naming the node, from a shape function that found the node
// wrong, whatever `strict` is.
Status InferTypes(Graph& graph, const ShapeFunctionTable& functions,
                  const InferenceOptions& options = {});

}  // namespace tenon
