// Computes single nodes with a provider's kernels, for constant folding.
#pragma once

#include <memory>
#include <utility>

#include "base/thread_pool.h"
#include "ir/passes.h"
#include "runtime/provider.h"
#include "runtime/shared_weights.h"
#include "runtime/uniform_constants.h"

namespace tenon {

class ThreadPool;

// `provider` makes kernels that run on the CPU; it and `threads` outlive the evaluator. What the
// evaluator computes from weights is shared with other sessions on the same weights, unless
// `shared` is null.
class KernelEvaluator final : public NodeEvaluator {
 public:
  KernelEvaluator(ExecutionProvider& provider, ThreadPool& threads,
                  std::shared_ptr<SharedWeights> shared)
      : provider_(provider), threads_(threads), shared_(std::move(shared)) {}

  bool CanEvaluate(const Graph& graph, const Node& node) const override;
  Result<std::vector<Value>> Evaluate(const Graph& graph, const Node& node,
                                      std::span<const Value> inputs) override;

 private:
  Result<std::vector<Value>> Run(const Graph& graph, const Node& node,
                                 std::span<const Value> inputs);

  ExecutionProvider& provider_;
  ThreadPool& threads_;
  const std::shared_ptr<SharedWeights> shared_;
  UniformConstants uniform_constants_;
};

}  // namespace tenon
