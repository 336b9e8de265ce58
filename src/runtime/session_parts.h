// What a session is made of besides the model.
#pragma once

#include <memory>
#include <vector>

namespace tenon {

class Allocator;
class ExecutionProvider;
struct FailedNode;
class Profiler;
class ShapeFunctionTable;
class SharedWeights;

struct SessionParts {
  // In order of preference. The last one should take the nodes that the others leave.
  std::vector<std::unique_ptr<ExecutionProvider>> providers;
  const ShapeFunctionTable* shape_functions = nullptr;  // outlives the session
  // Records the session until EndProfiling or the session's end; may be null.
  std::shared_ptr<Profiler> profiler;
  // Where intermediate values are allocated; null: an arena of the session's own.
  std::shared_ptr<Allocator> memory = nullptr;
  // Where packed weights are shared; null: the environment's.
  std::shared_ptr<SharedWeights> shared_weights = nullptr;
  // Whether the last provider was added only because one is needed. If not, the config entry
  // session.disable_cpu_ep_fallback contradicts it.
  bool is_last_implicit = false;
  // Receives the node that could not be compiled if that makes the session fail; may be null.
  FailedNode* failed = nullptr;
};

}  // namespace tenon
