#include "runtime/concrete_shapes.h"

namespace tenon {
namespace {

// Before a run, only the shapes of most values are known.
bool HasElements(const Tensor& tensor) { return tensor.raw() != nullptr || tensor.size() == 0; }

}  // namespace

void ConcreteShapeContext::Begin(const Graph& graph, const Node& node,
                                 std::span<const Value* const> inputs) {
  graph_ = &graph;
  node_ = &node;
  inputs_ = inputs;
  outputs_.assign(node.outputs.size(), OutputShape());
  data_read_.assign(inputs.size(), false);
}

Result<const Tensor*> ConcreteShapeContext::TensorInput(size_t i) const {
  if (i >= inputs_.size() || inputs_[i] == nullptr) {
    return InvalidArgument("input {} is required and missing", i);
  }
  if (!inputs_[i]->is_tensor()) {
    return InvalidArgument("input {}: expected a tensor, got a {}", i,
                           ValueKindName(inputs_[i]->kind()));
  }
  return &inputs_[i]->tensor();
}

ValueType ConcreteShapeContext::InputType(size_t i) const {
  if (i >= inputs_.size() || inputs_[i] == nullptr) return {};
  if (inputs_[i]->is_tensor()) {
    const Tensor& tensor = inputs_[i]->tensor();
    return ValueType::Tensor(tensor.type(), tensor.shape());
  }
  return graph_->value(node_->inputs[i]).type;
}

Result<SymbolicShape> ConcreteShapeContext::Input(size_t i) const {
  TENON_ASSIGN_OR_RETURN(const Tensor* tensor, TensorInput(i));
  return SymbolicShape(tensor->shape());
}

const Tensor* ConcreteShapeContext::InputData(size_t i) const {
  const Result<const Tensor*> tensor = TensorInput(i);
  if (!tensor) return nullptr;
  data_read_[i] = true;
  return HasElements(**tensor) && (*tensor)->memory().IsHostAccessible() ? *tensor : nullptr;
}

Result<Dims> ConcreteShapeContext::InputAsDims(size_t i) const {
  TENON_ASSIGN_OR_RETURN(const Tensor* tensor, TensorInput(i));
  data_read_[i] = true;
  if (!HasElements(*tensor)) return NotImplemented("the elements of input {} before the run", i);
  TENON_ASSIGN_OR_RETURN(const Shape integers, IntegersOf(*tensor));
  return Dims(integers.begin(), integers.end());
}

Status ConcreteShapeContext::SetOutput(size_t i, SymbolicShape shape) {
  if (!HasOutput(i)) return OkStatus();
  return SetOutput(i, std::move(shape), graph_->value(node_->outputs[i]).type.element_type);
}

Status ConcreteShapeContext::SetOutput(size_t i, SymbolicShape shape, DataType type) {
  if (!HasOutput(i)) return OkStatus();
  std::optional<Shape> numbers = shape.ToShape();
  if (!numbers) return InvalidArgument("output {}: the size of {} is out of range", i, shape);
  TENON_RETURN_IF_ERROR(numbers->CheckedNumElements());
  if (type == DataType::kUndefined) return InvalidArgument("output {}: unknown element type", i);
  outputs_[i] = {std::move(*numbers), type, true};
  return OkStatus();
}

Status ConcreteShapeContext::SetOutputType(size_t i, ValueType type) {
  if (!type.is_tensor() || !type.shape) return OkStatus();
  return SetOutput(i, *type.shape, type.element_type);
}

Result<std::vector<ValueType>> ConcreteShapeContext::InferSubgraph(std::string_view attribute,
                                                                   std::vector<ValueType>) {
  // Not called at run time: control flow allocates its outputs itself.
  return NotImplemented("the shape of subgraph '{}' at run time", attribute);
}

}  // namespace tenon
