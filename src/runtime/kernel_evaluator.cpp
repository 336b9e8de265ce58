#include "runtime/kernel_evaluator.h"

#include "runtime/evaluate.h"
#include "runtime/kernel_info.h"

namespace tenon {
namespace {

// Below this size, making a constant is faster than finding a shared one.
constexpr size_t kWorthSharing = 4096;
// A node whose kernel needs more than this and as much as its inputs is left to runs.
constexpr size_t kLeastScratch = size_t{16} << 20;

}  // namespace

bool KernelEvaluator::CanEvaluate(const Graph&, const Node& node) const {
  return node.Subgraphs().empty();
}

Result<std::vector<Value>> KernelEvaluator::Evaluate(const Graph& graph, const Node& node,
                                                     std::span<const Value> inputs) {
  const bool is_of_weights = shared_ != nullptr && inputs.size() == 1 && inputs[0].is_tensor() &&
                             inputs[0].tensor().bytes() >= kWorthSharing &&
                             node.outputs.size() == 1;
  const std::optional<std::string> operation = is_of_weights ? OperationKey(node) : std::nullopt;
  if (!operation) return Run(graph, node, inputs);
  const Tensor& weights = inputs[0].tensor();
  const auto make = [&](const Tensor&) -> Result<Tensor> {
    TENON_ASSIGN_OR_RETURN(const std::vector<Value> made, Run(graph, node, inputs));
    if (!made[0].is_tensor()) return Fail("{} makes no tensor", node.Describe());
    return made[0].tensor();
  };
  const std::string form =
      Format("{} of {} {}", *operation, DataTypeName(weights.type()), weights.shape());
  TENON_ASSIGN_OR_RETURN(const std::shared_ptr<const Tensor> made,
                         shared_->Get(weights, form, make));
  const bool is_view = made->raw() == weights.raw();  // still in the file's memory
  if (is_view || made->type() == DataType::kString) return std::vector<Value>{*made};
  return std::vector<Value>{Tensor::ReadOnlyView(made->type(), made->shape(), made->raw(),
                                                 std::const_pointer_cast<Tensor>(made))};
}

Result<std::vector<Value>> KernelEvaluator::Run(const Graph& graph, const Node& node,
                                                std::span<const Value> inputs) {
  KernelInfo info(graph, node);
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Kernel> kernel, provider_.CreateKernel(info));
  if (kernel->traits().is_stateful) {
    return NotImplemented("{} does not give the same result every time", node.Describe());
  }
  size_t most_scratch = kLeastScratch;
  for (const Value& input : inputs) {
    if (input.is_tensor()) most_scratch += input.tensor().bytes();
  }
  return EvaluateNode(graph, node, *kernel, inputs, threads_, SharedLastingMemory(),
                      &uniform_constants_, most_scratch);
}

}  // namespace tenon
