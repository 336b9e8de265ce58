#include "ops/widen_half.h"

#include <algorithm>
#include <unordered_map>

#include "ir/schema.h"

namespace tenon {
namespace {

constexpr int32_t kCastOpset = 13;

bool IsHalf(const ValueType& type) {
  return type.is_tensor() &&
         (type.element_type == DataType::kFloat16 || type.element_type == DataType::kBfloat16);
}

class HalfWidening {
 public:
  explicit HalfWidening(Graph& graph) : graph_(graph) {}

  Result<std::vector<NodeId>> Order() { return graph_.TopologicalOrder(); }

  bool Widen(NodeId id) {
    Node& node = graph_.node(id);
    if (node.provider >= 0 || !Touches(node)) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.has_input(i) && IsHalf(graph_.value(node.inputs[i]).type)) {
        graph_.SetInput(id, i, WideOf(node.inputs[i], node));
      }
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.has_output(i) && IsHalf(graph_.value(node.outputs[i]).type)) Narrow(id, i);
    }
    return true;
  }

 private:
  bool Touches(const Node& node) const {
    const auto is_half = [this](ValueId id) {
      return id != ValueId::kNone && IsHalf(graph_.value(id).type);
    };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_half) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), is_half);
  }

  ValueId NewValue(ValueId like, std::string_view suffix) {
    const ValueInfo& info = graph_.value(like);
    ValueType type = info.type;
    type.element_type = DataType::kFloat;
    return graph_.AddValue(graph_.UnusedName(Format("{}{}", info.name, suffix)), std::move(type));
  }

  void AddCast(ValueId from, ValueId to, const Node& for_node) {
    NodeSpec spec;
    spec.op_type = "Cast";
    spec.inputs = {from};
    spec.outputs = {to};
    spec.opset = kCastOpset;
    spec.name = Format("{}/widen", for_node.name);
    spec.attributes.emplace_back("to", static_cast<int64_t>(graph_.value(to).type.element_type));
    Node& cast = graph_.AddNode(std::move(spec));
    cast.schema = FindSchema("", "Cast", kCastOpset);
  }

  // The float32 form of a 16-bit value.
  ValueId WideOf(ValueId half, const Node& for_node) {
    const auto known = wide_.find(half);
    if (known != wide_.end()) return known->second;
    const ValueId wide = NewValue(half, "/float32");
    AddCast(half, wide, for_node);
    wide_[half] = wide;
    return wide;
  }

  // Output `i` is computed as float32 and cast to the value that it was.
  void Narrow(NodeId id, size_t i) {
    const ValueId half = graph_.node(id).outputs[i];
    const ValueId wide = NewValue(half, "/float32");
    graph_.SetOutputValue(id, i, wide);
    AddCast(wide, half, graph_.node(id));
    wide_[half] = wide;
  }

  Graph& graph_;
  std::unordered_map<ValueId, ValueId> wide_;
};

}  // namespace

size_t WidenHalf(Graph& graph) {
  HalfWidening widening(graph);
  const Result<std::vector<NodeId>> order = widening.Order();
  if (!order) return 0;
  size_t widened = 0;
  for (const NodeId id : *order) {
    for (Graph* subgraph : graph.node(id).Subgraphs()) widened += WidenHalf(*subgraph);
    widened += widening.Widen(id) ? 1 : 0;
  }
  return widened;
}

}  // namespace tenon
