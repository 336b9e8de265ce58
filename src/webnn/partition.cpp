#include "webnn/partition.h"

#include <algorithm>
#include <cstring>

namespace tenon::webnn {
namespace {

bool HasKnownShape(const ValueType& type) {
  return type.is_tensor() && type.shape && type.shape->ToShape().has_value();
}

bool SameBytes(const Tensor& a, const Tensor& b) {
  return a.type() == b.type() && a.shape() == b.shape() &&
         (a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0);
}

}  // namespace

Partition::Partition(std::shared_ptr<Context> context, std::unique_ptr<Graph> body,
                     std::vector<bool> parameters, std::string node)
    : context_(std::move(context)),
      body_(std::move(body)),
      parameters_(std::move(parameters)),
      first_node_(std::move(node)),
      node_count_(body_->node_count()) {
  for (const ValueId id : body_->inputs) input_names_.push_back(body_->value(id).name);
  for (const GraphOutput& output : body_->outputs()) output_names_.push_back(output.name);
  for (size_t i = 0; i < body_->value_count(); ++i) {
    const ValueInfo& info = body_->value(static_cast<ValueId>(i));
    const bool is_used = info.is_input || info.producer != NodeId::kNone;
    is_static_ &= !is_used || HasKnownShape(info.type);
  }
  is_static_ &= std::find(parameters_.begin(), parameters_.end(), true) == parameters_.end();
}

Status Partition::BindStatic() {
  auto binding = std::make_unique<Binding>();
  for (const ValueId id : body_->inputs) {
    binding->inputs.push_back(*body_->value(id).type.shape->ToShape());
  }
  TENON_RETURN_IF_ERROR(InferOutputs(*body_, *binding));
  bindings_.push_back(std::move(binding));
  TENON_RETURN_IF_ERROR(Program(*bindings_.front()));
  return OkStatus();
}

bool Partition::Matches(const Binding& binding, std::span<const Value* const> inputs) const {
  size_t parameter = 0;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const Tensor& tensor = inputs[i]->tensor();
    if (!(tensor.shape() == binding.inputs[i])) return false;
    if (parameters_[i] && !SameBytes(tensor, binding.parameters[parameter++])) return false;
  }
  return true;
}

Result<Partition::Binding*> Partition::Bind(std::span<const Value* const> inputs) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->is_tensor()) continue;
    return Fail("'{}' is a {}, not a tensor", input_names_[i], ValueKindName(inputs[i]->kind()));
  }
  for (auto known = bindings_.begin(); known != bindings_.end(); ++known) {
    if (!Matches(**known, inputs)) continue;
    std::rotate(bindings_.begin(), known, known + 1);
    return bindings_.front().get();
  }
  if (is_static_) {
    for (size_t i = 0; i < inputs.size(); ++i) {
      const Shape& expected = bindings_.front()->inputs[i];
      if (inputs[i]->tensor().shape() == expected) continue;
      return InvalidArgument("'{}': expected shape {}, got {}", input_names_[i], expected,
                             inputs[i]->tensor().shape());
    }
  }
  auto binding = std::make_unique<Binding>();
  for (size_t i = 0; i < inputs.size(); ++i) {
    binding->inputs.push_back(inputs[i]->tensor().shape());
    if (!parameters_[i]) continue;
    TENON_ASSIGN_OR_RETURN(Tensor copy, inputs[i]->tensor().Clone());
    binding->parameters.push_back(std::move(copy));
  }
  TENON_ASSIGN_OR_RETURN(const std::unique_ptr<Graph> body, BodyFor(*binding));
  TENON_RETURN_IF_ERROR(InferOutputs(*body, *binding));
  if (bindings_.size() == kMostBindings) bindings_.pop_back();
  bindings_.insert(bindings_.begin(), std::move(binding));
  return bindings_.front().get();
}

// The body with the shapes of a binding, and with all values computed that follow from them.
Result<std::unique_ptr<Graph>> Partition::BodyFor(const Binding& binding) {
  std::unique_ptr<Graph> body = body_->Clone();
  size_t parameter = 0;
  for (size_t i = 0; i < binding.inputs.size(); ++i) {
    const ValueId id = body_->inputs[i];
    body->value(id).type.shape = SymbolicShape(binding.inputs[i]);
    if (!parameters_[i]) continue;
    // A constant is not an input.
    body->inputs.erase(std::find(body->inputs.begin(), body->inputs.end(), id));
    body->value(id).is_input = false;
    body->SetInitializer(id, binding.parameters[parameter++]);
  }
  // Inferred types for unknown sizes would contradict the known sizes.
  for (size_t i = 0; i < body->value_count(); ++i) {
    ValueInfo& info = body->value(static_cast<ValueId>(i));
    if (info.producer != NodeId::kNone && !HasKnownShape(info.type)) info.type.shape.reset();
  }
  TENON_RETURN_IF_ERROR(context_->folder.Fold(*body));
  return body;
}

Status Partition::InferOutputs(const Graph& body, Binding& binding) const {
  for (const GraphOutput& output : body.outputs()) {
    const ValueType& type = body.value(output.value).type;
    std::optional<Shape> shape = type.shape ? type.shape->ToShape() : std::nullopt;
    if (!shape) return NotImplemented("the shape of '{}' depends on data", output.name);
    binding.outputs.push_back({type.element_type, std::move(*shape)});
  }
  return OkStatus();
}

Result<const std::string*> Partition::Program(Binding& binding) {
  if (binding.builder != nullptr) return &binding.program;
  if (body_ == nullptr) return Fail("the constants of the partition were released");
  std::unique_ptr<Graph> bound;
  if (!is_static_) {
    TENON_ASSIGN_OR_RETURN(bound, BodyFor(binding));
  }
  const Graph& body = bound == nullptr ? *body_ : *bound;
  auto builder = std::make_unique<ProgramBuilder>(context_->limits);
  Emission emission(body, *builder, context_->folder);
  for (const ValueId id : body.inputs) {
    const ValueInfo& info = body.value(id);
    const std::optional<Shape> shape = info.type.shape->ToShape();
    // Only its shape is used; there may be no operand of its type.
    if (body.IsUnused(id)) continue;
    TENON_ASSIGN_OR_RETURN(const Operand operand,
                           builder->Input(info.name, info.type.element_type, *shape));
    emission.Set(id, operand);
  }
  TENON_RETURN_IF_ERROR(emission.EmitAll());
  for (const GraphOutput& output : body.outputs()) {
    TENON_ASSIGN_OR_RETURN(const Operand operand, emission.OperandOf(output.value));
    TENON_RETURN_IF_ERROR(
        builder->Output(output.name, body.value(output.value).type.element_type, operand));
  }
  binding.program = builder->ToText();
  binding.builder = std::move(builder);
  return &binding.program;
}

void Partition::ReleaseConstants() {
  if (!is_static_) return;
  body_.reset();
  for (const auto& binding : bindings_) {
    binding->builder.reset();
    binding->program = std::string();
  }
}

}  // namespace tenon::webnn
