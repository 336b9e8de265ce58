// Decides which provider runs which node.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "base/logging.h"
#include "runtime/assignment.h"
#include "runtime/failed_node.h"
#include "runtime/provider.h"

namespace tenon {

// Divides the nodes of one model among the providers of its session.
class Partitioner {
 public:
  // `providers` are in order of preference; `graph` is the model's. All outlive the partitioner.
  // `failed` receives the provider that could not compile its nodes, `fused` the nodes that were
  // fused; both may be null.
  Partitioner(const Graph& graph, std::span<const std::unique_ptr<ExecutionProvider>> providers,
              const Logger& logger, FailedNode* failed = nullptr, FusedNodes* fused = nullptr);

  // Asks each provider in turn which nodes that have no provider yet it claims, in `graph` and its
  // subgraphs, puts images into the layout that it prefers, and fuses the groups that it wants
  // fused. A provider that fails, or wants a group that cannot be fused, gets nothing of that
  // graph; an error in the log says why. Errors: those of a provider that compiles its nodes or is
  // asked for its layout.
  Status Assign(Graph& graph);

 private:
  Status AssignTo(size_t provider, Graph& graph);
  Status Compile(size_t provider, const Graph& graph, std::vector<FusedNode> nodes);
  Result<std::vector<FusedNode>> Fuse(size_t provider, Graph& graph, std::span<const Claim> claims);

  const std::span<const std::unique_ptr<ExecutionProvider>> providers_;
  const Logger& logger_;
  const Graph& model_;
  FailedNode* const failed_;
  FusedNodes* const fused_;
  int fused_nodes_ = 0;
};

// Error: kNotImplemented naming the first node without a provider, with the types of its inputs.
// `operators` has those that some provider has for some types.
Status CheckAllAssigned(const Graph& graph, const ShapeFunctionTable& operators);

}  // namespace tenon
