#include "ir/graph_builder.h"

#include "ir/schema.h"

namespace tenon {

ValueId GraphBuilder::Input(std::string name, DataType type, std::optional<SymbolicShape> shape) {
  const ValueId id = graph->AddValue(std::move(name), ValueType::Tensor(type, std::move(shape)));
  graph->AddInput(id);
  return id;
}

ValueId GraphBuilder::Constant(Tensor tensor) {
  return graph->AddInitializer(graph->UnusedName("c"), std::move(tensor));
}

ValueId GraphBuilder::Ints(std::vector<int64_t> values) {
  return Constant(Tensor::Of<int64_t>({static_cast<int64_t>(values.size())}, values));
}

ValueId GraphBuilder::Op(std::string op_type, std::vector<ValueId> inputs,
                         std::vector<Attribute> attributes, std::string domain) {
  return OpN(std::move(op_type), std::move(inputs), 1, std::move(attributes), std::move(domain))[0];
}

std::vector<ValueId> GraphBuilder::OpN(std::string op_type, std::vector<ValueId> inputs,
                                       size_t outputs, std::vector<Attribute> attributes,
                                       std::string domain) {
  NodeSpec spec;
  spec.name = Format("{}{}", op_type, graph->node_capacity());
  for (size_t i = 0; i < outputs; ++i)
    spec.outputs.push_back(graph->AddValue(graph->UnusedName("v")));
  const std::vector<ValueId> results = spec.outputs;
  spec.op_type = std::move(op_type);
  spec.domain = std::move(domain);
  spec.inputs = std::move(inputs);
  spec.attributes = std::move(attributes);
  spec.opset = spec.domain.empty() ? opset_ : 1;
  Node& node = graph->AddNode(std::move(spec));
  node.schema = FindSchema(node.domain, node.op_type, node.opset);
  return results;
}

ValueId GraphBuilder::Shaped(ValueId id, SymbolicShape shape, DataType type) {
  graph->value(id).type = ValueType::Tensor(type, std::move(shape));
  return id;
}

void GraphBuilder::Output(ValueId id) { graph->AddOutput(graph->value(id).name, id); }

ValueId GraphBuilder::Capture(ValueId outer, std::string name) {
  const ValueId inner = graph->AddValue(std::move(name));
  graph->captures.push_back({outer, inner});
  return inner;
}

namespace {

template <class T>
std::string Elements(const Tensor& tensor) {
  std::string text;
  for (const T& value : tensor.values<T>()) text += Format("{}{}", text.empty() ? "" : ", ", value);
  return Format("{{{}}}", text);
}

std::string ValueText(const Graph& graph, ValueId id) {
  if (id == ValueId::kNone) return "_";
  const Tensor* constant = graph.ConstantOf(id);
  if (constant && constant->size() <= 4) {
    if (constant->type() == DataType::kFloat) return Elements<float>(*constant);
    if (constant->type() == DataType::kInt64) return Elements<int64_t>(*constant);
  }
  return graph.value(id).name;
}

std::string List(const Graph& graph, const std::vector<ValueId>& ids) {
  std::vector<std::string> texts;
  for (const ValueId id : ids) texts.push_back(ValueText(graph, id));
  return JoinNames(texts, SIZE_MAX);
}

std::string AttributeText(const Attribute& attribute) {
  std::string value = "...";
  if (const auto* number = attribute.get<int64_t>()) value = Format("{}", *number);
  if (const auto* number = attribute.get<float>()) value = Format("{}", *number);
  if (const auto* text = attribute.get<std::string>()) value = *text;
  if (const auto* list = attribute.get<std::vector<int64_t>>()) {
    value = Shape(std::span<const int64_t>(*list)).ToString();
  }
  if (const auto* list = attribute.get<std::vector<float>>()) {
    value = Elements<float>(
        Tensor::Of<float>({static_cast<int64_t>(list->size())}, std::span<const float>(*list)));
  }
  return attribute.name + "=" + value;
}

}  // namespace

std::string GraphText(const Graph& graph) {
  const auto order = graph.TopologicalOrder();
  if (!order) return order.error().message();
  std::string text;
  for (const NodeId id : *order) {
    const Node& node = graph.node(id);
    std::vector<std::string> attributes;
    for (const Attribute& attribute : node.attributes) {
      attributes.push_back(AttributeText(attribute));
    }
    text += Format("{} = {}{}({})\n", List(graph, node.outputs), node.op_type,
                   attributes.empty() ? std::string() : Format("<{}>", JoinNames(attributes)),
                   List(graph, node.inputs));
  }
  std::vector<ValueId> outputs;
  for (const GraphOutput& output : graph.outputs()) outputs.push_back(output.value);
  return text + "return " + List(graph, outputs);
}

}  // namespace tenon
