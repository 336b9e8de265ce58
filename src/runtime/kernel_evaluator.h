// Computes single nodes with a provider's kernels, for constant folding.
#pragma once

#include "ir/passes.h"
#include "runtime/provider.h"

namespace tenon {

// `provider` makes kernels that run on the CPU; it and `threads` outlive the evaluator.
class KernelEvaluator final : public NodeEvaluator {
 public:
  KernelEvaluator(ExecutionProvider& provider, ThreadPool& threads)
      : provider_(provider), threads_(threads) {}

  bool CanEvaluate(const Graph& graph, const Node& node) const override;
  Result<std::vector<Value>> Evaluate(const Graph& graph, const Node& node,
                                      std::span<const Value> inputs) override;

 private:
  ExecutionProvider& provider_;
  ThreadPool& threads_;
};

}  // namespace tenon
