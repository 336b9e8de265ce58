// Type and shape inference over a whole graph.
#pragma once

#include <unordered_map>
#include <vector>

#include "ir/model.h"
#include "ir/shape_context.h"

namespace tenon {

// The elements of small integer tensors, as far as inference could follow them: per graph (the
// given one and its subgraphs) and value. Constants are not included.
using KnownElements = std::unordered_map<const Graph*, std::unordered_map<ValueId, Dims>>;

struct InferenceOptions {
  // A contradiction between a declared and an inferred type is an error; else the inferred type
  // replaces the declared one.
  bool strict = false;
};

// Fills ValueInfo::type of every value that can be known from the graph's inputs, initializers and
// declared types, following the elements of small integer tensors through shape computations. A
// dimension of a value of `graph` itself that has neither number nor name becomes the symbol
// "<value>.<axis>", so that it can be compared with others.
// `known`, if not null, receives the elements found. Idempotent. Errors: kInvalidGraph naming the
// node, from a shape function that found an error, whatever `strict` is.
Status InferTypes(Graph& graph, const ShapeFunctionTable& functions,
                  const InferenceOptions& options = {}, KnownElements* known = nullptr);

}  // namespace tenon
