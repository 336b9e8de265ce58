#include "webnn/emission.h"

#include "ir/contrib_schema.h"
#include "ir/inference.h"
#include "ir/passes.h"
#include "ir/scalar.h"
#include "ir/schema.h"
#include "ir/splice.h"
#include "ops/cpu_provider.h"
#include "ops/framework/composites.h"
#include "webnn/channels_last_shapes.h"

namespace tenon::webnn {

Folder::Folder()
    : threads_(ThreadPoolOptions{.threads = 1}),
      cpu_(MakeCpuProvider()),
      evaluator_(*cpu_, threads_, nullptr) {}

Status Folder::Fold(Graph& graph) {
  TENON_RETURN_IF_ERROR(GatherConstants(graph));
  // Constants from one round may give shapes to the next.
  constexpr int kMostRounds = 8;
  for (int round = 0; round < kMostRounds; ++round) {
    KnownElements known;
    TENON_RETURN_IF_ERROR(InferTypes(graph, ShapeFunctions(), {}, &known));
    FoldingBudget budget;
    const size_t changes =
        FoldKnownElements(graph, known) + FoldConstants(graph, evaluator_, budget);
    if (changes == 0) break;
  }
  return OkStatus();
}

Result<Operand> Emission::OperandOf(ValueId id) {
  const auto known = operands_.find(id);
  if (known != operands_.end()) return known->second;
  const Tensor* const constant = graph_.ConstantOf(id);
  if (constant == nullptr) return Fail("value '{}' was not written", graph_.value(id).name);
  TENON_ASSIGN_OR_RETURN(const Operand operand, builder_.Constant(*constant));
  Set(id, operand);
  return operand;
}

Status Emission::Emit(const Node& node) {
  if (const Row* const row = FindRow(node)) {
    NodeContext context(*this, node, *row);
    return row->emit(context);
  }
  return EmitBody(node);
}

Status Emission::EmitAll() {
  TENON_ASSIGN_OR_RETURN(const std::vector<NodeId> order, graph_.TopologicalOrder());
  for (const NodeId id : order) {
    const Node& node = graph_.node(id);
    TENON_RETURN_IF_ERROR(Emit(node).WithContext(node.Describe()));
  }
  return OkStatus();
}

Status Emission::EmitBody(const Node& node) {
  if (!node.Subgraphs().empty()) return NotImplemented("WebNN has no control flow");
  Graph body;
  const NodeId id = node.id;
  TENON_ASSIGN_OR_RETURN(const std::vector<ValueId> map, CopyNodes(graph_, {&id, 1}, body));
  for (const ValueId input : node.inputs) {
    if (input == ValueId::kNone) continue;
    const ValueId inner = map[Index(input)];
    if (graph_.ConstantOf(input) == nullptr && !body.value(inner).is_input) body.AddInput(inner);
  }
  for (const ValueId output : node.outputs) {
    if (output == ValueId::kNone) continue;
    body.AddOutput(graph_.value(output).name, map[Index(output)]);
  }
  const auto has_row = [](const Graph&, const Node& inner) { return FindRow(inner) != nullptr; };
  const size_t nodes = body.node_capacity();
  (void)ExpandComposites(body);
  TENON_RETURN_IF_ERROR(ExpandOperators(body, has_row));
  if (body.node_capacity() == nodes) {
    return NotImplemented("there is no {} in WebNN, nor a form made of what there is",
                          node.op_type);
  }
  TENON_RETURN_IF_ERROR(folder_.Fold(body));
  Emission inside(body, builder_, folder_);
  for (const ValueId input : node.inputs) {
    if (input == ValueId::kNone || graph_.ConstantOf(input) != nullptr) continue;
    TENON_ASSIGN_OR_RETURN(const Operand operand, OperandOf(input));
    inside.Set(map[Index(input)], operand);
  }
  TENON_RETURN_IF_ERROR(inside.EmitAll());
  for (size_t i = 0, next = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i] == ValueId::kNone) continue;
    TENON_ASSIGN_OR_RETURN(const Operand operand, inside.OperandOf(body.outputs()[next++].value));
    Set(node.outputs[i], operand);
  }
  return OkStatus();
}

bool NodeContext::has_channels_last() const { return node_.domain == contrib::kInternalNhwc; }

Result<Shape> NodeContext::ShapeOf(ValueId id) const {
  const ValueType& type = TypeOf(id);
  std::optional<Shape> shape = type.shape ? type.shape->ToShape() : std::nullopt;
  if (!shape) {
    return NotImplemented("the shape of '{}' is known only after it was computed",
                          emission_.graph().value(id).name);
  }
  return std::move(*shape);
}

Result<const Tensor*> NodeContext::Constant(size_t i) const {
  const ValueId id = node_.inputs[i];
  const Tensor* const constant = emission_.graph().ConstantOf(id);
  if (constant == nullptr) {
    return NotImplemented("WebNN takes input {} ('{}') as a constant alone", i,
                          emission_.graph().value(id).name);
  }
  return constant;
}

Result<Numbers> NodeContext::Integers(size_t i) const {
  TENON_ASSIGN_OR_RETURN(const Tensor* const constant, Constant(i));
  TENON_ASSIGN_OR_RETURN(const Shape integers, IntegersOf(*constant));
  return Numbers(integers.begin(), integers.end());
}

Result<Numbers> NodeContext::IntegersOr(size_t i, std::string_view attribute) const {
  if (HasInput(i)) return Integers(i);
  return node_.GetInts(attribute);
}

Result<double> NodeContext::Number(size_t i) const {
  TENON_ASSIGN_OR_RETURN(const Tensor* const constant, Constant(i));
  const std::optional<double> number = ScalarOf(*constant);
  if (!number) return NotImplemented("input {} is expected to have one element", i);
  return *number;
}

Result<int64_t> NodeContext::Axis(int64_t axis, size_t rank) const {
  TENON_ASSIGN_OR_RETURN(const size_t from_front, NormalizeAxis(axis, rank));
  return static_cast<int64_t>(from_front);
}

Status NodeContext::SetOutput(size_t i, Operand operand) {
  TENON_ASSIGN_OR_RETURN(operand, builder().Cast(operand, OperandType(i)));
  TENON_ASSIGN_OR_RETURN(const Shape shape, OutputShape(i));
  if (!(builder().ShapeOf(operand) == shape)) {
    return Fail("output {} was written with shape {} instead of {}", i, builder().ShapeOf(operand),
                shape);
  }
  emission_.Set(node_.outputs[i], operand);
  return OkStatus();
}

Status NodeContext::RefuseOutput(size_t i) const {
  if (!HasOutput(i)) return OkStatus();
  return NotImplemented("WebNN does not compute output {}", i);
}

int32_t NodeContext::since() const { return node_.schema == nullptr ? 1 : node_.schema->since; }

}  // namespace tenon::webnn
