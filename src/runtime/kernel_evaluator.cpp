#include "runtime/kernel_evaluator.h"

#include "runtime/evaluate.h"

namespace tenon {

bool KernelEvaluator::CanEvaluate(const Graph&, const Node& node) const {
  return node.Subgraphs().empty();
}

Result<std::vector<Value>> KernelEvaluator::Evaluate(const Graph& graph, const Node& node,
                                                     std::span<const Value> inputs) {
  KernelInfo info(graph, node);
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, provider_.CreateKernel(info));
  if (kernel->traits().is_stateful) {
    return NotImplemented("{} does not give the same result every time", node.Describe());
  }
  return EvaluateNode(graph, node, *kernel, inputs, threads_);
}

}  // namespace tenon
