#include "runtime/evaluate.h"

#include <algorithm>
#include <cstdlib>

#include "base/stop_signal.h"
#include "runtime/concrete_shapes.h"

namespace tenon {
namespace {

class LoneContext final : public KernelContext {
 public:
  LoneContext(const Node& node, std::span<const Value* const> inputs,
              std::span<Value* const> outputs, ThreadPool& threads,
              const std::shared_ptr<Allocator>& memory, size_t most_scratch)
      : memory_(memory), most_scratch_(most_scratch) {
    node_ = &node;
    inputs_ = inputs;
    outputs_ = outputs;
    threads_ = &threads;
  }

  Result<Tensor*> AllocateOutput(size_t i, DataType type, const Shape& shape) override {
    TENON_ASSIGN_OR_RETURN(*outputs_[i], Tensor::Allocate(type, shape, memory_));
    return &outputs_[i]->tensor();
  }

  void* Scratch(size_t bytes) override {
    if (bytes > most_scratch_) return nullptr;
    // An allocation of 0 bytes would be null, which means that there is no memory.
    const auto size = static_cast<int64_t>(std::max<size_t>(bytes, 1));
    Result<Tensor> memory = Tensor::Allocate(DataType::kUint8, Shape({size}));
    if (!memory) return nullptr;
    scratch_ = std::move(*memory);
    return scratch_.raw();
  }

  // Nodes with subgraphs are not evaluated by themselves.
  SubgraphRunner& Subgraph(size_t) override { std::abort(); }

 private:
  const std::shared_ptr<Allocator>& memory_;
  const size_t most_scratch_;
  Tensor scratch_;
};

Status RunWhole(const Kernel& kernel, KernelContext& context) {
  TENON_RETURN_IF_ERROR(kernel.Run(context));
  const StopSignal* const stop = StopSignal::Current();
  if (stop != nullptr && stop->has_cut()) return Fail("stopped before its end");
  return OkStatus();
}

}  // namespace

Result<std::vector<Value>> EvaluateNode(const Graph& graph, const Node& node, const Kernel& kernel,
                                        std::span<const Value> inputs, ThreadPool& threads,
                                        const std::shared_ptr<Allocator>& memory,
                                        UniformConstants* uniform_constants, size_t most_scratch) {
  if (!node.Subgraphs().empty()) return NotImplemented("a node with subgraphs cannot run alone");
  std::vector<const Value*> input_pointers;
  for (const Value& input : inputs) input_pointers.push_back(input.has_value() ? &input : nullptr);
  std::vector<Value> outputs(node.outputs.size());
  std::vector<Value*> output_pointers;
  for (size_t i = 0; i < outputs.size(); ++i) {
    output_pointers.push_back(node.has_output(i) ? &outputs[i] : nullptr);
  }

  const KernelTraits traits = kernel.traits();
  if (!traits.allocates_outputs) {
    ConcreteShapeContext shapes;
    shapes.Begin(graph, node, input_pointers);
    TENON_RETURN_IF_ERROR(kernel.InferShapes(shapes));
    for (size_t i = 0; i < outputs.size(); ++i) {
      if (!node.has_output(i)) continue;
      const auto& output = shapes.output(i);
      if (!output.set) return Fail("the shape function did not set output {}", i);
      if (i == 0 && traits.is_view) {
        outputs[0] = inputs[0].tensor().Reshaped(output.shape);
        continue;
      }
      if (i == 0 && traits.fills_evenly) {
        const auto fill = [&](Tensor tensor) {
          Value part = std::move(tensor);
          Value* part_pointer = &part;
          LoneContext context(node, input_pointers, {&part_pointer, 1}, threads, memory,
                              most_scratch);
          return RunWhole(kernel, context);
        };
        UniformConstants own;
        UniformConstants& constants = uniform_constants != nullptr ? *uniform_constants : own;
        TENON_ASSIGN_OR_RETURN(outputs[0], constants.Make(output.type, output.shape, memory, fill));
        return outputs;
      }
      TENON_ASSIGN_OR_RETURN(outputs[i], Tensor::Allocate(output.type, output.shape, memory));
    }
    if (traits.is_view) return outputs;
  }
  LoneContext context(node, input_pointers, output_pointers, threads, memory, most_scratch);
  TENON_RETURN_IF_ERROR(RunWhole(kernel, context));
  return outputs;
}

}  // namespace tenon
