#include "ops/fusion/quantized_split.h"

#include <vector>

#include "ir/graph.h"
#include "ir/output_types.h"
#include "ir/rewrite_limit.h"
#include "ir/schema.h"
#include "ops/framework/registry.h"

namespace tenon {
namespace {

// A constant with one element.
const Tensor* OneElement(const Graph& graph, ValueId id) {
  const Tensor* constant = graph.ConstantOf(id);
  return constant != nullptr && constant->size() == 1 ? constant : nullptr;
}

// The node that dequantizes a Split's input, with one scale and zero point, from integers that
// Split takes; null if there is none.
const Node* DequantizerOf(const Graph& graph, const Node& split) {
  const NodeId producer = graph.value(split.inputs[0]).producer;
  if (producer == NodeId::kNone) return nullptr;
  const Node& node = graph.node(producer);
  if (node.op_type != "DequantizeLinear" || !node.domain.empty() || !node.has_input(2)) {
    return nullptr;
  }
  const Tensor* scale = OneElement(graph, node.inputs[1]);
  const Tensor* zero = OneElement(graph, node.inputs[2]);
  const bool fits = scale != nullptr && scale->type() == DataType::kFloat && zero != nullptr &&
                    HasOpRow("", "Split", zero->type()) &&
                    graph.StoredConstantOf(node.inputs[0]) == nullptr;
  return fits ? &node : nullptr;
}

void Exchange(Graph& graph, NodeId split_id, const Node& dequantizer) {
  const std::vector<ValueId> operands = dequantizer.inputs;
  const std::vector<ValueId> floats = graph.node(split_id).outputs;
  const int32_t opset = dequantizer.opset;
  const DataType type = graph.ConstantOf(operands[2])->type();
  graph.SetInput(split_id, 0, operands[0]);
  for (size_t i = 0; i < floats.size(); ++i) {
    if (floats[i] == ValueId::kNone) continue;
    const std::string name = graph.value(floats[i]).name;
    ValueType integers = graph.value(floats[i]).type;
    integers.element_type = type;
    const ValueId part = graph.AddValue(graph.UnusedName(name + "/integers"), std::move(integers));
    graph.SetOutputValue(split_id, i, part);
    NodeSpec spec;
    spec.opset = opset;
    spec.op_type = "DequantizeLinear";
    spec.name = name + "/DequantizeLinear";
    spec.inputs = {part, operands[1], operands[2]};
    spec.outputs = {floats[i]};
    Node& node = graph.AddNode(std::move(spec));
    node.schema = FindSchema(node.domain, node.op_type, node.opset);
    node.provider = graph.node(split_id).provider;
  }
}

}  // namespace

size_t SplitIntegers(Graph& graph, int32_t provider) {
  size_t changes = 0;
  const size_t nodes = graph.node_capacity();
  for (size_t i = 0; i < nodes; ++i) {
    const auto id = static_cast<NodeId>(i);
    const Node* node = graph.FindNode(id);
    if (!node || node->provider != provider || node->op_type != "Split" || !node->domain.empty()) {
      continue;
    }
    const Node* dequantizer = DequantizerOf(graph, *node);
    if (dequantizer == nullptr || !RewriteLimit::Allows("split integers", *node)) continue;
    Exchange(graph, id, *dequantizer);
    ++changes;
  }
  return changes;
}

}  // namespace tenon
