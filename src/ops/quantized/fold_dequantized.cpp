#include "ops/quantized/fold_dequantized.h"

#include <numeric>
#include <optional>
#include <vector>

#include "ir/rewrite_limit.h"
#include "ops/quantized/quantization.h"

namespace tenon {
namespace {

// The constants of a DequantizeLinear that may be folded.
struct Dequantization {
  const Tensor* integers;
  const Tensor* scales;
  std::vector<int32_t> zeros;  // empty: 0

  static std::optional<Dequantization> Of(const Graph& graph, const Node& node) {
    if (node.op_type != "DequantizeLinear" || !node.domain.empty() ||
        node.GetInt("block_size", 0) != 0) {
      return std::nullopt;
    }
    Dequantization found = {
        graph.StoredConstantOf(node.inputs[0]), graph.ConstantOf(node.inputs[1]), {}};
    const auto is_int8 = [](const Tensor* tensor) {
      return tensor && (tensor->type() == DataType::kInt8 || tensor->type() == DataType::kUint8);
    };
    if (!is_int8(found.integers) || !found.scales || found.scales->type() != DataType::kFloat ||
        found.scales->rank() > 1) {
      return std::nullopt;
    }
    if (!node.has_input(2)) return found;
    const Tensor* zeros = graph.ConstantOf(node.inputs[2]);
    if (!is_int8(zeros) || zeros->size() != found.scales->size()) return std::nullopt;
    for (int64_t i = 0; i < zeros->size(); ++i) {
      found.zeros.push_back(zeros->type() == DataType::kInt8 ? int32_t{zeros->data<int8_t>()[i]}
                                                             : int32_t{zeros->data<uint8_t>()[i]});
    }
    return found;
  }

  Result<Tensor> Floats(int64_t axis) const {
    const Shape& shape = integers->shape();
    TENON_ASSIGN_OR_RETURN(const ScaleLayout layout,
                           ScaleLayout::Make(shape, scales->shape(), axis, 0));
    TENON_ASSIGN_OR_RETURN(Tensor floats, Tensor::Allocate(DataType::kFloat, shape));
    const auto* from = static_cast<const uint8_t*>(integers->raw());
    const kernels::QuantizedType type = *QuantizedTypeOf(integers->type());
    layout.ForEachRun(0, static_cast<size_t>(integers->size()),
                      [&](size_t first, size_t count, size_t scale, bool per_element) {
                        kernels::Dequantize(
                            from + first, count,
                            {scales->data<float>() + scale,
                             zeros.empty() ? nullptr : zeros.data() + scale, per_element},
                            type, floats.data<float>() + first);
                      });
    return floats;
  }
};

bool Fold(Graph& graph, const Node& node, size_t& budget) {
  const std::optional<Dequantization> found = Dequantization::Of(graph, node);
  if (!found) return false;
  const ValueId output = node.outputs[0];
  if (graph.value(output).output_uses > 0) return false;
  const size_t bytes = found->integers->bytes() * sizeof(float);
  if (bytes > budget || !RewriteLimit::Allows("FoldDequantized", node)) return false;
  Result<Tensor> floats = found->Floats(node.GetInt("axis", 1));
  if (!floats) return false;  // the node will report it
  budget -= bytes;
  graph.RemoveNode(node.id);
  graph.value(output).type = ValueType::Tensor(DataType::kFloat, floats->shape());
  graph.SetInitializer(output, Value(std::move(*floats)));
  return true;
}

}  // namespace

size_t FoldDequantized(Graph& graph, int32_t provider, size_t& budget) {
  size_t folded = 0;
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) {
      folded += FoldDequantized(*subgraph, provider, budget);
    }
    if (node->provider == provider && Fold(graph, *node, budget)) ++folded;
  }
  return folded;
}

}  // namespace tenon
