// Shape inference of one node whose input values are known: at run time and in constant folding.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "ir/graph.h"
#include "ir/shape_context.h"
#include "tensor/value.h"

namespace tenon {

// Collects the output shapes of one node. Reused from node to node to save allocations.
class ConcreteShapeContext final : public ShapeContext {
 public:
  struct OutputShape {
    Shape shape;
    DataType type = DataType::kUndefined;
    bool set = false;
  };

  // `graph` gives the element types of the outputs; `inputs` are null where left out.
  void Begin(const Graph& graph, const Node& node, std::span<const Value* const> inputs);

  const Node& node() const override { return *node_; }
  ValueType InputType(size_t i) const override;
  Result<SymbolicShape> Input(size_t i) const override;
  const Tensor* InputData(size_t i) const override;
  Result<Dims> InputAsDims(size_t i) const override;
  Status SetOutput(size_t i, SymbolicShape shape) override;
  Status SetOutput(size_t i, SymbolicShape shape, DataType type) override;
  Status SetOutputType(size_t i, ValueType type) override;
  std::optional<Dims> KnownDims(size_t) const override { return std::nullopt; }
  void SetOutputDims(size_t, Dims) override {}
  Result<std::vector<ValueType>> InferSubgraph(std::string_view attribute,
                                               std::vector<ValueType> inputs) override;

  const OutputShape& output(size_t i) const { return outputs_[i]; }
  // Whether the shape function looked at the elements of input `i`.
  bool ReadData(size_t i) const { return i < data_read_.size() && data_read_[i]; }

 private:
  Result<const Tensor*> TensorInput(size_t i) const;

  const Graph* graph_ = nullptr;
  const Node* node_ = nullptr;
  std::span<const Value* const> inputs_;
  std::vector<OutputShape> outputs_;
  mutable std::vector<bool> data_read_;
};

}  // namespace tenon
