// Replaces shape computations by constants if inference knows their results.
#include <algorithm>
#include <limits>

#include "ir/passes.h"

namespace tenon {
namespace {

using Elements = std::unordered_map<ValueId, Dims>;

template <class T>
Tensor TensorOf(const Dims& elements, const Shape& shape) {
  std::vector<T> numbers;
  for (const Dim& element : elements) numbers.push_back(static_cast<T>(element.value()));
  return Tensor::Of<T>(shape, std::span<const T>(numbers));
}

// The value as a tensor, if every element is a number that its type holds.
std::optional<Tensor> KnownTensor(const ValueType& type, const Dims& elements) {
  if (!type.is_tensor() || !type.shape) return std::nullopt;
  const std::optional<Shape> shape = type.shape->ToShape();
  if (!shape) return std::nullopt;
  const Result<int64_t> count = shape->CheckedNumElements();
  if (!count || *count != static_cast<int64_t>(elements.size())) return std::nullopt;
  const bool is_int32 = type.element_type == DataType::kInt32;
  if (!is_int32 && type.element_type != DataType::kInt64) return std::nullopt;
  const bool fits = std::all_of(elements.begin(), elements.end(), [&](const Dim& element) {
    return element.is_number() &&
           (!is_int32 || (element.value() >= std::numeric_limits<int32_t>::min() &&
                          element.value() <= std::numeric_limits<int32_t>::max()));
  });
  if (!fits) return std::nullopt;
  return is_int32 ? TensorOf<int32_t>(elements, *shape) : TensorOf<int64_t>(elements, *shape);
}

// One constant per output, or nothing if any is not known or is a graph output.
std::vector<Tensor> KnownOutputs(const Graph& graph, const Node& node, const Elements& known) {
  std::vector<Tensor> tensors;
  for (const ValueId output : node.outputs) {
    if (output == ValueId::kNone) continue;
    const auto elements = known.find(output);
    if (elements == known.end() || graph.value(output).output_uses > 0) return {};
    std::optional<Tensor> tensor = KnownTensor(graph.value(output).type, elements->second);
    if (!tensor) return {};
    tensors.push_back(std::move(*tensor));
  }
  return tensors;
}

bool IsShape(const Node& node) { return node.op_type == "Shape" && node.domain.empty(); }

size_t FoldNodes(
    Graph& graph, const Elements& known,
    FunctionRef<bool(const Node&)> is_wanted = [](const Node&) { return true; }) {
  size_t changes = 0;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node || !is_wanted(*node)) continue;
    std::vector<Tensor> tensors = KnownOutputs(graph, *node, known);
    if (tensors.empty()) continue;
    std::vector<ValueId> outputs = node->outputs;
    std::erase(outputs, ValueId::kNone);
    graph.RemoveNode(node->id);
    for (size_t k = 0; k < outputs.size(); ++k) {
      graph.value(outputs[k]).type = ValueType::Tensor(tensors[k].type(), tensors[k].shape());
      graph.SetInitializer(outputs[k], std::move(tensors[k]));
    }
    ++changes;
  }
  return changes;
}

// A constant shape with the same meaning as `requested` for this input, if there is one: 0 for a
// dimension of the input, and one -1 for the remaining size.
std::optional<std::vector<int64_t>> ConstantShape(const Dims& requested,
                                                  const SymbolicShape& input) {
  std::vector<int64_t> shape;
  bool has_rest = false;
  for (size_t i = 0; i < requested.size(); ++i) {
    const Dim& dim = requested[i];
    // A number below 1 has a special meaning, which the other entries would change.
    if (dim.is_number() && dim.value() < 1) return std::nullopt;
    if (dim.is_number()) {
      shape.push_back(dim.value());
    } else if (i < input.rank() && dim == input[i]) {
      shape.push_back(0);
    } else if (!has_rest && !dim.is_unknown()) {
      shape.push_back(-1);
      has_rest = true;
    } else {
      return std::nullopt;
    }
  }
  return shape;
}

size_t FoldReshapes(Graph& graph, const Elements& known) {
  size_t changes = 0;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    const bool is_reshape = node && node->op_type == "Reshape" && node->domain.empty() &&
                            node->has_input(1) && node->GetInt("allowzero", 0) == 0;
    if (!is_reshape) continue;
    const auto requested = known.find(node->inputs[1]);
    const std::optional<SymbolicShape>& input = graph.value(node->inputs[0]).type.shape;
    if (requested == known.end() || !input || graph.ConstantOf(node->inputs[1])) continue;
    const auto shape = ConstantShape(requested->second, *input);
    if (!shape) continue;
    const std::string hint = Format("{}/constant", graph.value(node->inputs[1]).name);
    const ValueId constant = graph.AddInitializer(
        graph.UnusedName(hint), Tensor::Of<int64_t>({static_cast<int64_t>(shape->size())},
                                                    std::span<const int64_t>(*shape)));
    graph.SetInput(node->id, 1, constant);
    ++changes;
  }
  return changes;
}

// Calls fold(graph, elements) for the graph and its subgraphs. Returns the sum of the results.
size_t FoldEverywhere(Graph& graph, const KnownElements& known,
                      FunctionRef<size_t(Graph&, const Elements&)> fold) {
  size_t changes = 0;
  if (const auto elements = known.find(&graph); elements != known.end()) {
    changes = fold(graph, elements->second);
  }
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) changes += FoldEverywhere(*subgraph, known, fold);
  }
  return changes;
}

}  // namespace

size_t FoldKnownElements(Graph& graph, const KnownElements& known) {
  return FoldEverywhere(graph, known, [](Graph& one, const Elements& elements) {
    return FoldNodes(one, elements) + FoldReshapes(one, elements);
  });
}

size_t FoldKnownShapes(Graph& graph, const KnownElements& known) {
  return FoldEverywhere(graph, known, [](Graph& one, const Elements& elements) {
    return FoldNodes(one, elements, IsShape);
  });
}

}  // namespace tenon
