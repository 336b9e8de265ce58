#include "planner.h"

#include <algorithm>
#include <limits>

#include "call.h"
#include "expression_writer.h"
#include "host_values.h"
#include "kernel_writer.h"
#include "operators.h"

namespace codegen {

Planner::Planner(const Graph& graph, std::span<const int> inputs, std::span<const int> outputs,
                 const Target& target)
    : graph_(graph),
      inputs_(inputs.begin(), inputs.end()),
      outputs_(outputs.begin(), outputs.end()),
      target_(target),
      group_size_(std::min(target.max_group_size, target.group_size)),
      tensors_(graph.values.size()),
      output_storage_(outputs.size(), -1),
      output_is_written_(outputs.size(), false) {}

int Planner::AddStorage(Storage::Kind kind, int index, size_t bytes) {
  plan_.storages.push_back({.kind = kind, .index = index, .bytes = bytes});
  return static_cast<int>(plan_.storages.size()) - 1;
}

Result<Plan> Planner::Make(std::span<const InputDescription> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    auto tensor = std::make_shared<Tensor>(inputs[i].type, inputs[i].shape);
    tensor->storage = AddStorage(Storage::kInput, static_cast<int>(i), 0);
    tensor->known = inputs[i].known;
    if (inputs_[i] >= 0) tensors_[static_cast<size_t>(inputs_[i])] = std::move(tensor);
  }
  for (size_t i = 0; i < graph_.values.size(); ++i) {
    const auto& constant = graph_.values[i].constant;
    if (!constant || tensors_[i]) continue;
    auto tensor = std::make_shared<Tensor>(constant->type, constant->shape);
    tensor->storage = AddStorage(Storage::kWeight, static_cast<int>(i), 0);
    if (graph_.values[i].layout == ValueInfo::Layout::kChannelsLast) {
      tensor->strides = ChannelsLastStrides(tensor->shape);
    } else if (graph_.values[i].layout == ValueInfo::Layout::kTransposed) {
      tensor->strides = {1, tensor->shape[0]};
    }
    if (ElementCount(tensor->shape) <= kMaxKnownElements) tensor->known = constant->Integers();
    tensor->scalar = constant->Float();
    tensors_[i] = std::move(tensor);
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    output_storage_[i] = AddStorage(Storage::kOutput, static_cast<int>(i), 0);
  }
  PLUGIN_RETURN_IF_ERROR(LowerNodes());
  PLUGIN_RETURN_IF_ERROR(FinishOutputs());
  PlaceScratch(plan_);
  return std::move(plan_);
}

Status Planner::LowerNodes() {
  for (const Node& node : graph_.nodes) {
    if (const Status status = LowerNode(node); !status.ok()) {
      return Failure("{}-{} node '{}': {}", node.type, node.since, node.name, status.text());
    }
  }
  return Status();
}

Status Planner::LowerNode(const Node& node) {
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (node.inputs[i] >= 0 && !tensors_[static_cast<size_t>(node.inputs[i])]) {
      return Failure("input {} has no producer", i);
    }
  }
  std::vector<const Tensor*> inputs;
  for (const int input : node.inputs) {
    inputs.push_back(input < 0 ? nullptr : tensors_[static_cast<size_t>(input)].get());
  }
  if (auto known = EvaluateOnHost(node, inputs)) {
    return SetOutput(node, 0, KnownIntegers(known->type, known->shape, std::move(known->values)));
  }
  const Operator* op = target_.find(node);
  if (!op) return Failure("expected an operator that was claimed");
  return op->lower(*this, node);
}

bool Planner::HasInput(const Node& node, size_t index) const {
  return index < node.inputs.size() && node.inputs[index] >= 0;
}

TensorRef Planner::Input(const Node& node, size_t index) const {
  return tensors_[static_cast<size_t>(node.inputs[index])];
}

Result<std::vector<int64_t>> Planner::KnownInput(const Node& node, size_t index) const {
  const TensorRef tensor = Input(node, index);
  if (!tensor->known) return Failure("input {}: expected contents that are known", index);
  return *tensor->known;
}

int Planner::OutputIndex(int value) const {
  const auto it = std::find(outputs_.begin(), outputs_.end(), value);
  return it == outputs_.end() ? -1 : static_cast<int>(it - outputs_.begin());
}

// Whether more than one reader waits for the value, so that it should be computed once.
bool Planner::IsSharedLater(int value) const {
  return graph_.value(value).consumers + (OutputIndex(value) >= 0 ? 1 : 0) > 1;
}

Status Planner::SetOutput(const Node& node, size_t index, TensorRef tensor) {
  if (index >= node.outputs.size() || node.outputs[index] < 0) return Status();
  const int value = node.outputs[index];
  if (tensor->deferred && IsSharedLater(value)) {
    return StoreOutput(node, index, std::move(tensor)).status();
  }
  tensors_[static_cast<size_t>(value)] = std::move(tensor);
  return Status();
}

Result<TensorRef> Planner::StoreOutput(const Node& node, size_t index, TensorRef tensor) {
  const int value = index < node.outputs.size() ? node.outputs[index] : -1;
  const int output = value < 0 ? -1 : OutputIndex(value);
  if (tensor->deferred && output >= 0 && !output_is_written_[static_cast<size_t>(output)]) {
    Tensor target(tensor->type, tensor->shape);
    target.storage = output_storage_[static_cast<size_t>(output)];
    PLUGIN_RETURN_IF_ERROR(Emit(tensor, target));
    output_is_written_[static_cast<size_t>(output)] = true;
  }
  PLUGIN_RETURN_IF_ERROR(Store(tensor));
  if (value >= 0) tensors_[static_cast<size_t>(value)] = tensor;
  return tensor;
}

TensorRef Planner::AllocateOutput(const Node& node, size_t index, DataType type, Shape shape) {
  const int value = index < node.outputs.size() ? node.outputs[index] : -1;
  const int output = value < 0 ? -1 : OutputIndex(value);
  TensorRef tensor = std::make_shared<Tensor>(type, std::move(shape));
  if (output >= 0 && !output_is_written_[static_cast<size_t>(output)]) {
    tensor->storage = output_storage_[static_cast<size_t>(output)];
    output_is_written_[static_cast<size_t>(output)] = true;
  } else {
    tensor = Allocate(type, tensor->shape);
  }
  if (value >= 0) tensors_[static_cast<size_t>(value)] = tensor;
  return tensor;
}

Status Planner::FinishOutputs() {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    const TensorRef& tensor = tensors_[static_cast<size_t>(outputs_[i])];
    if (!tensor) return Failure("output {} has no producer", i);
    plan_.outputs.push_back({tensor->type, tensor->shape});
    if (output_is_written_[i]) continue;
    Tensor target(tensor->type, tensor->shape);
    target.storage = output_storage_[i];
    const TensorRef source =
        tensor->deferred ? tensor : Expression(tensor->type, tensor->shape, "$0", {tensor});
    PLUGIN_RETURN_IF_ERROR(Emit(source, target));
  }
  return Status();
}

TensorRef Planner::Expression(DataType type, Shape shape, std::string expression,
                              std::vector<TensorRef> operands) {
  auto tensor = std::make_shared<Tensor>(type, std::move(shape));
  tensor->deferred = std::make_unique<Deferred>();
  tensor->deferred->expression = std::move(expression);
  for (const TensorRef& operand : operands) {
    if (operand->deferred) tensor->deferred->size += operand->deferred->size;
  }
  tensor->deferred->operands = std::move(operands);
  return tensor;
}

Result<TensorRef> Planner::Add(const TensorRef& a, const TensorRef& b) {
  PLUGIN_ASSIGN_OR_RETURN(Shape shape, BroadcastShape(a->shape, b->shape));
  if (target_.add && a != b) {
    if (TensorRef sum = target_.add(*this, a, b)) return sum;
    if (TensorRef sum = target_.add(*this, b, a)) return sum;
  }
  return Expression(a->type, std::move(shape), "$0 + $1", {a, b});
}

TensorRef Planner::FromRoot(DataType type, Shape shape, Root root) {
  TensorRef tensor = Expression(type, std::move(shape), "", {});
  tensor->deferred->root = std::move(root);
  return tensor;
}

TensorRef Planner::FromCall(DataType type, Shape shape, std::shared_ptr<Call> call) {
  TensorRef tensor = Expression(type, std::move(shape), "", {});
  tensor->deferred->call = std::move(call);
  return tensor;
}

TensorRef Planner::KnownIntegers(DataType type, Shape shape, std::vector<int64_t> values) {
  auto tensor = std::make_shared<Tensor>(type, std::move(shape));
  tensor->known = std::move(values);
  return tensor;
}

Status Planner::Store(const TensorRef& tensor) {
  if (tensor->deferred) {
    const auto bytes = static_cast<size_t>(ElementCount(tensor->shape)) * SizeOf(tensor->type);
    Tensor target(tensor->type, tensor->shape);
    target.strides = StridesOf(*tensor);
    target.storage = AddStorage(Storage::kScratch, 0, bytes);
    return Emit(tensor, target);
  }
  if (tensor->storage < 0) {  // integers that are only known so far
    HostTensor constant = ToHostTensor(tensor->type, tensor->shape, *tensor->known);
    tensor->storage = AddStorage(Storage::kConstant, static_cast<int>(plan_.constants.size()), 0);
    plan_.constants.push_back(std::move(constant));
  }
  return Status();
}

Result<TensorRef> Planner::Contiguous(const TensorRef& tensor) {
  return InLayout(tensor, RowMajorStrides(tensor->shape));
}

Result<TensorRef> Planner::InLayout(const TensorRef& tensor, const Shape& strides) {
  if (!tensor->deferred) PLUGIN_RETURN_IF_ERROR(Store(tensor));
  const bool is_in_memory = !tensor->deferred;
  if (is_in_memory && AreSameLayout(tensor->shape, tensor->strides, strides)) return tensor;
  TensorRef result =
      is_in_memory ? Expression(tensor->type, tensor->shape, "$0", {tensor}) : tensor;
  const TensorRef target = Allocate(tensor->type, tensor->shape);
  target->strides = strides;
  PLUGIN_RETURN_IF_ERROR(Emit(result, *target));
  return result;
}

Result<TensorRef> Planner::View(const TensorRef& tensor, Shape shape, Shape strides,
                                int64_t offset) {
  PLUGIN_RETURN_IF_ERROR(Store(tensor));
  auto view = std::make_shared<Tensor>(tensor->type, std::move(shape));
  view->stored_type = tensor->stored_type;
  view->strides = std::move(strides);
  view->offset = tensor->offset + offset;
  view->storage = tensor->storage;
  return view;
}

Result<TensorRef> Planner::Reshape(const TensorRef& tensor, Shape shape) {
  if (ElementCount(shape) != ElementCount(tensor->shape)) {
    return Failure("expected a shape of {} elements, got {}", ElementCount(tensor->shape), shape);
  }
  if (tensor->storage < 0 && tensor->known) {
    return KnownIntegers(tensor->type, std::move(shape), *tensor->known);
  }
  // What is stored for this is stored row-major.
  TensorRef source = tensor;
  if (tensor->deferred && !tensor->deferred->call) {
    PLUGIN_ASSIGN_OR_RETURN(source, Contiguous(tensor));
  }
  PLUGIN_RETURN_IF_ERROR(Store(source));
  auto strides = ReshapedStrides(source->shape, source->strides, shape);
  if (!strides) {
    PLUGIN_ASSIGN_OR_RETURN(source, Contiguous(tensor));
    strides = RowMajorStrides(shape);
  }
  PLUGIN_ASSIGN_OR_RETURN(TensorRef view, View(source, std::move(shape), std::move(*strides), 0));
  view->known = tensor->known;
  view->scalar = tensor->scalar;
  return view;
}

TensorRef Planner::Allocate(DataType type, Shape shape) {
  auto tensor = std::make_shared<Tensor>(type, std::move(shape));
  tensor->storage = AddStorage(Storage::kScratch, 0,
                               static_cast<size_t>(ElementCount(tensor->shape)) * SizeOf(type));
  return tensor;
}

Status Planner::StoreInto(const TensorRef& tensor, const Tensor& target, const Shape& strides,
                          int64_t offset) {
  Tensor part(target.type, tensor->shape);
  part.strides = strides;
  part.offset = target.offset + offset;
  part.storage = target.storage;
  const TensorRef source = Expression(tensor->type, tensor->shape, "$0", {tensor});
  return Emit(source, part);
}

// That of a call, or that of operands whose channels are innermost: element-wise results keep it.
Shape Planner::StridesOf(const Tensor& tensor) {
  const Deferred& deferred = *tensor.deferred;
  if (deferred.call && !deferred.call->strides.empty()) return deferred.call->strides;
  for (const TensorRef& operand : deferred.operands) {
    if (operand->shape != tensor.shape) continue;
    if (operand->deferred) {
      Shape strides = StridesOf(*operand);
      if (!AreSameLayout(tensor.shape, strides, tensor.strides)) return strides;
    } else if (operand->IsChannelsLast()) {
      return operand->strides;
    }
  }
  return tensor.strides;
}

Status Planner::EmitCall(const TensorRef& tensor, const Tensor& target) {
  const std::shared_ptr<Call> call = tensor->deferred->call;
  const Shape strides = call->strides.empty() ? RowMajorStrides(tensor->shape) : call->strides;
  if (!AreSameLayout(tensor->shape, strides, target.strides)) {
    const TensorRef stored = FromCall(tensor->type, tensor->shape, call);
    PLUGIN_RETURN_IF_ERROR(Store(stored));
    const TensorRef copy = Expression(tensor->type, tensor->shape, "$0", {stored});
    tensor->deferred = std::move(copy->deferred);
    return Emit(tensor, target);
  }
  PLUGIN_RETURN_IF_ERROR(call->Prepare());
  Launch launch;
  launch.name = call->name();
  const auto add = [&](const Tensor& argument) {
    launch.arguments.push_back({.kind = Argument::kBuffer,
                                .storage = argument.storage,
                                .offset = argument.offset,
                                .element_size = SizeOf(argument.stored_type)});
  };
  for (const TensorRef& operand : call->operands) {
    PLUGIN_RETURN_IF_ERROR(Store(operand));
    add(*operand);
  }
  for (const TensorRef& written : call->also_writes) add(*written);
  add(target);
  if (call->workspace_bytes > 0) {
    add(*Allocate(DataType::kUInt8, {static_cast<int64_t>(call->workspace_bytes)}));
  }
  launch.call = call;
  plan_.launches.push_back(std::move(launch));
  return Status();
}

Status Planner::Emit(const TensorRef& tensor, const Tensor& target) {
  const int64_t count = ElementCount(tensor->shape);
  if (count > std::numeric_limits<int32_t>::max()) {
    return Failure("expected fewer than 2^31 elements, got shape {}", tensor->shape);
  }
  if (count > 0 && tensor->deferred->call) {
    PLUGIN_RETURN_IF_ERROR(EmitCall(tensor, target));
    if (!tensor->deferred) return Status();  // written in two steps
  } else if (count > 0) {
    ExpressionWriter writer(*this, tensor->shape);
    PLUGIN_ASSIGN_OR_RETURN(Launch launch, writer.Write(tensor, target));
    plan_.launches.push_back(std::move(launch));
  }
  // From here on the tensor is what was written.
  tensor->deferred.reset();
  tensor->stored_type = target.stored_type;
  tensor->strides = target.strides;
  tensor->offset = target.offset;
  tensor->storage = target.storage;
  return Status();
}

}  // namespace codegen
