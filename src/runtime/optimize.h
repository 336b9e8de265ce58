// From the model as read to the graph that is planned: inference, passes, partitioning and the
// providers' own rewrites.
#pragma once

#include <memory>

#include "base/status.h"
#include "runtime/fused_nodes.h"

namespace tenon {

class Graph;
class Logger;
struct Model;
struct SessionOptions;
struct SessionParts;
class SharedWeights;
class ThreadPool;

struct OptimizeContext {
  ThreadPool& threads;
  const Logger& logger;
  FusedNodes& fused;                              // receives what providers fused
  std::shared_ptr<SharedWeights> shared_weights;  // of all sessions on the same weights
};

// Replaces symbolic dimensions of the graph's values by the sizes that the caller knows.
void FixFreeDimensions(Graph& graph, const SessionOptions& options);

// After success every node of model.graph has a provider, and types are inferred as far as
// possible.
Status OptimizeModel(Model& model, const SessionOptions& options, const SessionParts& parts,
                     const OptimizeContext& context);

}  // namespace tenon
