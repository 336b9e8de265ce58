// Nodes that compositions consist of.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "ir/graph.h"
#include "ir/schema.h"

namespace tenon {

// Adds nodes to a graph, by default of the standard's domain.
class NodeBuilder {
 public:
  NodeBuilder(Graph& graph, std::string name, int32_t opset = 14)
      : graph_(graph), name_(std::move(name)), opset_(opset) {}

  ValueId Op(std::string op_type, std::vector<ValueId> inputs,
             std::vector<Attribute> attributes = {}, std::string domain = "") {
    const ValueId output = graph_.AddValue(graph_.UnusedName(Format("{}/{}", name_, op_type)));
    Add(std::move(op_type), std::move(inputs), {output}, std::move(attributes), std::move(domain));
    return output;
  }

  // x rounded to the values of uint8.
  ValueId Rounded(ValueId x) { return Rounded(x, x); }
  // The same in the range of `part`, which is x or some of its elements.
  ValueId Rounded(ValueId x, ValueId part) {
    std::vector<ValueId> quantized;
    for (const char* name : {"bytes", "scale", "zero_point"}) {
      quantized.push_back(graph_.AddValue(graph_.UnusedName(Format("{}/{}", name_, name))));
    }
    Add("DynamicQuantizeLinear", {part}, quantized, {});
    if (part != x) quantized[0] = Op("QuantizeLinear", {x, quantized[1], quantized[2]});
    return Op("DequantizeLinear", std::move(quantized));
  }

  void Add(std::string op_type, std::vector<ValueId> inputs, std::vector<ValueId> outputs,
           std::vector<Attribute> attributes, std::string domain = "") {
    NodeSpec spec;
    spec.name = Format("{}/{}", name_, op_type);
    spec.op_type = std::move(op_type);
    spec.inputs = std::move(inputs);
    spec.outputs = std::move(outputs);
    spec.attributes = std::move(attributes);
    spec.opset = domain.empty() ? opset_ : 1;
    spec.domain = std::move(domain);
    Node& node = graph_.AddNode(std::move(spec));
    node.schema = FindSchema(node.domain, node.op_type, node.opset);
  }

 private:
  Graph& graph_;
  const std::string name_;
  const int32_t opset_;
};

}  // namespace tenon
