#include "ops/widen_narrow.h"

#include <algorithm>
#include <unordered_map>

#include "ir/schema.h"
#include "ops/narrow_types.h"

namespace tenon {
namespace {

constexpr int32_t kCastOpset = 13;
constexpr int32_t kNarrowCastOpset = 28;  // the first that has all types

// The type that has all values of `type` and more kernels; `type` itself if it is wide enough.
DataType WideTypeOf(DataType type) {
  switch (type) {
    case DataType::kFloat16:
    case DataType::kBfloat16:
      return DataType::kFloat;
    case DataType::kInt4:
    case DataType::kInt2:
      return DataType::kInt8;
    case DataType::kUint4:
    case DataType::kUint2:
      return DataType::kUint8;
    default:
      return IsNarrowFloat(type) ? DataType::kFloat : type;
  }
}

bool IsNarrow(const ValueType& type) {
  return type.is_tensor() && WideTypeOf(type.element_type) != type.element_type;
}

class NarrowWidening {
 public:
  explicit NarrowWidening(Graph& graph) : graph_(graph) {}

  Result<std::vector<NodeId>> Order() { return graph_.TopologicalOrder(); }

  bool Widen(NodeId id) {
    Node& node = graph_.node(id);
    if (node.provider >= 0 || !Touches(node)) return false;
    for (size_t i = 0; i < node.inputs.size(); ++i) {
      if (node.has_input(i) && IsNarrow(graph_.value(node.inputs[i]).type)) {
        graph_.SetInput(id, i, WideOf(node.inputs[i], node));
      }
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      if (node.has_output(i) && IsNarrow(graph_.value(node.outputs[i]).type)) Narrow(id, i);
    }
    return true;
  }

 private:
  bool Touches(const Node& node) const {
    const auto is_narrow = [this](ValueId id) {
      return id != ValueId::kNone && IsNarrow(graph_.value(id).type);
    };
    return std::any_of(node.inputs.begin(), node.inputs.end(), is_narrow) ||
           std::any_of(node.outputs.begin(), node.outputs.end(), is_narrow);
  }

  ValueId NewValue(ValueId like) {
    const ValueInfo& info = graph_.value(like);
    ValueType type = info.type;
    type.element_type = WideTypeOf(type.element_type);
    return graph_.AddValue(graph_.UnusedName(Format("{}/wide", info.name)), std::move(type));
  }

  void AddCast(ValueId from, ValueId to, const Node& for_node) {
    NodeSpec spec;
    spec.op_type = "Cast";
    spec.inputs = {from};
    spec.outputs = {to};
    const DataType target = graph_.value(to).type.element_type;
    const bool is_common =
        kFloats.Contains(target) && kFloats.Contains(graph_.value(from).type.element_type);
    spec.opset = is_common ? kCastOpset : kNarrowCastOpset;
    spec.name = Format("{}/widen", for_node.name);
    spec.attributes.emplace_back("to", static_cast<int64_t>(target));
    // Keeps infinity where the target has it.
    if (!is_common) spec.attributes.emplace_back("saturate", int64_t{0});
    Node& cast = graph_.AddNode(std::move(spec));
    cast.schema = FindSchema("", "Cast", cast.opset);
  }

  // The wide form of a narrow value.
  ValueId WideOf(ValueId narrow, const Node& for_node) {
    const auto known = wide_.find(narrow);
    if (known != wide_.end()) return known->second;
    const ValueId wide = NewValue(narrow);
    AddCast(narrow, wide, for_node);
    wide_[narrow] = wide;
    return wide;
  }

  // Output `i` is computed in its wide type and cast to the value that it was.
  void Narrow(NodeId id, size_t i) {
    const ValueId narrow = graph_.node(id).outputs[i];
    const ValueId wide = NewValue(narrow);
    graph_.SetOutputValue(id, i, wide);
    AddCast(wide, narrow, graph_.node(id));
    wide_[narrow] = wide;
  }

  Graph& graph_;
  std::unordered_map<ValueId, ValueId> wide_;
};

}  // namespace

bool IsBetterWide(const Graph& graph, const Node& node) {
  return node.op_type == "Where" && node.domain.empty() && node.has_output(0) &&
         IsNarrow(graph.value(node.outputs[0]).type);
}

size_t WidenNarrow(Graph& graph) {
  NarrowWidening widening(graph);
  const Result<std::vector<NodeId>> order = widening.Order();
  if (!order) return 0;
  size_t widened = 0;
  for (const NodeId id : *order) {
    for (Graph* subgraph : graph.node(id).Subgraphs()) widened += WidenNarrow(*subgraph);
    widened += widening.Widen(id) ? 1 : 0;
  }
  return widened;
}

}  // namespace tenon
