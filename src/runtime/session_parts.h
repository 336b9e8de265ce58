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
  // In order of preference; the last one should take whatever the others leave.
  std::vector<std::unique_ptr<ExecutionProvider>> providers;
  const ShapeFunctionTable* shape_functions = nullptr;  // outlives the session
  // Records the session until EndProfiling, or until it is gone; may be null.
  std::shared_ptr<Profiler> profiler;
  // Where intermediate values come from; null: an arena of the session's own.
  std::shared_ptr<Allocator> memory = nullptr;
  // Where packed weights are shared; null: the environment's.
  std::shared_ptr<SharedWeights> shared_weights = nullptr;
  // Whether the last provider is there only because there must be one. If not, the config entry
  // session.disable_cpu_ep_fallback contradicts it.
  bool is_last_implicit = false;
  // Learns whose nodes could not be compiled if making the session fails so; may be null.
  FailedNode* failed = nullptr;
};

}  // namespace tenon
