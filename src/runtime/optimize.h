// From the model as read to the graph that is planned: inference, passes, partitioning and the
// providers' own rewrites.
#pragma once

#include <memory>

#include "base/status.h"
#include "runtime/assignment.h"

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
  // Receives which provider runs what, if session.record_ep_graph_assignment_info is 1: as ONNX
  // Runtime's, before providers rewrite their nodes.
  Assignment& assignment;
  std::shared_ptr<SharedWeights> shared_weights;  // of all sessions on the same weights
};

// Replaces symbolic dimensions of the graph's values by the sizes that the caller knows.
void FixFreeDimensions(Graph& graph, const SessionOptions& options);

// After success every node of model.graph has a provider, and types are inferred as far as
// possible.
Status OptimizeModel(Model& model, const SessionOptions& options, const SessionParts& parts,
                     const OptimizeContext& context);

}  // namespace tenon
