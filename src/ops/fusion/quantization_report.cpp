#include "ops/fusion/quantization_report.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "base/text.h"
#include "ir/graph.h"
#include "ir/node_error.h"
#include "ops/fusion/fusion.h"

namespace tenon {
namespace {

bool Quantizes(const Node& node) { return node.domain.empty() && node.op_type == "QuantizeLinear"; }
bool Dequantizes(const Node& node) {
  return node.domain.empty() && node.op_type == "DequantizeLinear";
}

// Operators of which some use has a form on integers.
const std::set<std::string_view>& OperatorsOnIntegers() {
  static const auto* const operators = [] {
    auto* const found = new std::set<std::string_view>{"Split"};  // see quantized_split.h
    for (const auto& family :
         {QuantizedProductFusions(), QuantizedConvTransposeFusions(), QuantizedElementFusions(),
          IntegerProductFusions(), BlockQuantizedFusions()}) {
      for (const Fusion& fusion : family) CollectOperators(fusion.rule.pattern, *found);
    }
    return found;
  }();
  return *operators;
}

class Reporter {
 public:
  explicit Reporter(const Graph& graph) : graph_(graph) {}

  std::string Describe(const Node& node) const {
    return Format("{}: {}", DescribeOperator(node),
                  Dequantizes(node) ? WhyDequantized(node) : WhyQuantized(node));
  }

 private:
  const Node* ProducerOf(ValueId id) const {
    const NodeId producer = graph_.value(id).producer;
    return producer == NodeId::kNone ? nullptr : &graph_.node(producer);
  }

  // What a QuantizeLinear or DequantizeLinear itself lacks; "" if nothing.
  std::string Lack(const Node& node, DataType type) const {
    const Tensor* scale = graph_.ConstantOf(node.inputs[1]);
    if (scale == nullptr) return "its scale is no constant";
    if (scale->type() != DataType::kFloat) {
      return Format("its scale is {}", DataTypeName(scale->type()));
    }
    if (node.has_input(2) && graph_.ConstantOf(node.inputs[2]) == nullptr) {
      return "its zero point is no constant";
    }
    const bool is_weight = graph_.StoredConstantOf(node.inputs[0]) != nullptr;
    if (scale->size() != 1 && !is_weight) return "its values have more than one scale";
    if (type != DataType::kInt8 && type != DataType::kUint8 && !is_weight) {
      return Format("its integers are {}", DataTypeName(type));
    }
    return "";
  }

  std::string WhyDequantized(const Node& node) const {
    if (std::string lack = Lack(node, graph_.value(node.inputs[0]).type.element_type);
        !lack.empty()) {
      return lack;
    }
    const ValueInfo& floats = graph_.value(node.outputs[0]);
    if (floats.output_uses > 0) return "its result is an output of the graph";
    if (floats.consumers.empty()) return "a subgraph reads its result";
    return WhyInFloats(graph_.node(floats.consumers.front()));
  }

  std::string WhyQuantized(const Node& node) const {
    if (std::string lack = Lack(node, graph_.value(node.outputs[0]).type.element_type);
        !lack.empty()) {
      return lack;
    }
    const Node* producer = ProducerOf(node.inputs[0]);
    return producer == nullptr ? "it quantizes an input of the graph" : WhyInFloats(*producer);
  }

  // Why a neighbour of these nodes has no form on integers here.
  std::string WhyInFloats(const Node& node) const {
    const std::string name = DescribeOperator(node);
    if (Quantizes(node) || Dequantizes(node)) {
      return Format("{} has other scales, and an output or another reader", name);
    }
    if (!node.domain.empty() || !OperatorsOnIntegers().contains(node.op_type)) {
      return Format("{} has no form on integers", name);
    }
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.has_input(i) && IsFloats(node.inputs[i])) {
        return Format("input {} '{}' of {} is not dequantized", i,
                      graph_.value(node.inputs[i]).name, name);
      }
    }
    const ValueInfo& result = graph_.value(node.outputs[0]);
    if (result.consumers.size() + static_cast<size_t>(result.output_uses) > 1) {
      return Format("the result of {} is read more than once", name);
    }
    if (result.output_uses > 0) return Format("the result of {} is an output of the graph", name);
    if (!result.consumers.empty() && !Quantizes(graph_.node(result.consumers.front()))) {
      return Format("the result of {} is not quantized before {}", name,
                    DescribeOperator(graph_.node(result.consumers.front())));
    }
    return Format("{} has no form on integers with these types, scales and attributes", name);
  }

  // Whether a value is of floats that were not dequantized. Constants may be biases.
  bool IsFloats(ValueId id) const {
    const ValueInfo& value = graph_.value(id);
    if (value.type.element_type != DataType::kFloat) return false;
    if (graph_.StoredConstantOf(id) != nullptr) return false;
    const Node* producer = ProducerOf(id);
    return producer == nullptr || !Dequantizes(*producer);
  }

  const Graph& graph_;
};

// Calls visit(graph, node) for those nodes of the graph and its subgraphs.
template <class Visit>
void VisitQuantizers(const Graph& graph, Visit visit) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (node == nullptr) continue;
    const bool is_one = Quantizes(*node) || Dequantizes(*node);
    // What fusions left without a reader is removed later.
    if (is_one && !graph.IsUnused(node->outputs[0])) visit(graph, *node);
    for (const Graph* subgraph : node->Subgraphs()) VisitQuantizers(*subgraph, visit);
  }
}

}  // namespace

size_t CountQuantizers(const Graph& graph) {
  size_t count = 0;
  VisitQuantizers(graph, [&](const Graph&, const Node&) { ++count; });
  return count;
}

std::vector<std::string> DescribeQuantizers(const Graph& graph) {
  std::vector<std::string> lines;
  VisitQuantizers(graph, [&](const Graph& owner, const Node& node) {
    lines.push_back(Reporter(owner).Describe(node));
  });
  return lines;
}

}  // namespace tenon
