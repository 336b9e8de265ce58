// From a graph whose nodes have providers to the plan of its runs.
#pragma once

#include <memory>
#include <span>

#include "base/status.h"
#include "runtime/plan.h"

namespace tenon {

struct FailedNode;
class SharedWeights;

// What a plan is made with; all of it outlives the plan.
struct PlanParts {
  std::span<ExecutionProvider* const> providers;  // by Node::provider
  std::span<const Location> memories;             // of the providers
  // Where values on the CPU get their memory.
  std::shared_ptr<Allocator> memory;
  const DataTransfers* transfers = nullptr;
  // Where packed weights are shared; null: nowhere.
  std::shared_ptr<SharedWeights> shared_weights;
  // Learns whose kernel could not be made; may be null.
  FailedNode* failed = nullptr;
  // For how many lists of feed shapes a memory plan is kept; 0: memory is not planned.
  size_t most_memory_plans = 64;
  // Whether constants stay, for a dump, that every reader packed for itself.
  bool keeps_constants = false;
};

// Makes every node's kernel through the provider that owns it and lays out the steps. A value that
// is made in one memory and read in another is copied by a step of its own, once; constants are
// copied here. Constants that every reader packed for itself are dropped from `graph`.
// Errors: kNotImplemented naming the node that no kernel takes; whatever a kernel's preparation
// finds wrong, with the node in front.
Result<Plan> BuildPlan(Graph& graph, const PlanParts& parts);

}  // namespace tenon
