// Makes the plan of the runs from a graph whose nodes have providers.
#pragma once

#include <memory>
#include <span>

#include "base/progress.h"
#include "base/status.h"
#include "runtime/plan.h"
#include "runtime/weight_policy.h"

namespace tenon {

struct FailedNode;
class Profiler;

// What a plan is made with. All of it outlives the plan.
struct PlanParts {
  std::span<ExecutionProvider* const> providers;  // by Node::provider
  std::span<const Location> memories;             // of the providers
  // Where values on the CPU get their memory.
  std::shared_ptr<Allocator> memory;
  const DataTransfers* transfers = nullptr;
  WeightPolicy weights;
  // Receives the node whose kernel could not be made; may be null.
  FailedNode* failed = nullptr;
  // For how many combinations of feed shapes memory plans are kept; 0: memory is not planned.
  size_t most_memory_plans = 64;
  // Whether these serve this session alone.
  bool owns_memory = false;
  // Whether runs may return unused blocks to the system. The client's arena is not the session's to
  // shrink.
  bool may_shrink_memory = false;
  // Whether constants that every reader packed for itself stay, so that a dump can show them.
  bool keeps_constants = false;
  // Where slabs and kernels' scratch on the CPU get their memory; null: in `memory`.
  std::shared_ptr<Allocator> work_memory = nullptr;
  Profiler* profiler = nullptr;  // records the creation of the kernels; may be null
  Progress progress = {};        // hears of each kernel of the main graph
};

// Makes every node's kernel through the provider that owns the node, and lays out the steps. A
// value that is made in one memory and read in another is copied once, by a step of its own;
// constants are copied here. Constants that every reader packed for itself are dropped from
// `graph`, and so are attributes that a kernel released. Errors: kNotImplemented naming the node
// that no kernel takes; the error of making a kernel, which names its node.
Result<Plan> BuildPlan(Graph& graph, const PlanParts& parts);

}  // namespace tenon
