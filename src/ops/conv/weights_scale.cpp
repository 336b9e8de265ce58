#include "ops/conv/weights_scale.h"

#include <span>
#include <string>

#include "ir/graph.h"
#include "ops/framework/float_rows.h"
#include "tensor/lasting_memory.h"

namespace tenon {
namespace {

// Writes `weights`, [channels, ...] aligned or not, times their factors.
void ScaleChannels(const Tensor& weights, std::span<const float> factors, float* scaled) {
  const size_t size = factors.empty() ? 0 : static_cast<size_t>(weights.size()) / factors.size();
  for (size_t c = 0; c < factors.size(); ++c) {
    float* to = scaled + c * size;
    CopyFloatRow(weights, c * size, size, to);
    for (size_t i = 0; i < size; ++i) to[i] *= factors[c];
  }
}

Status FoldInto(Graph& graph, Node& node, std::span<const float> factors) {
  const Tensor& weights = *graph.StoredConstantOf(node.inputs[1]);
  TENON_ASSIGN_OR_RETURN(
      Tensor scaled, Tensor::Allocate(DataType::kFloat, weights.shape(), SharedLastingMemory()));
  ScaleChannels(weights, factors, scaled.data<float>());
  const std::string& output = graph.value(node.outputs[0]).name;
  const ValueId constant =
      graph.AddInitializer(graph.UnusedName(output + "/weights"), std::move(scaled));
  const ValueId before = node.inputs[1];
  graph.SetInput(node.id, 1, constant);
  // The next scaled weights then get memory that has been written before.
  if (graph.IsUnused(before)) graph.RemoveInitializer(before);
  return OkStatus();
}

}  // namespace

Status FoldWeightScales(Graph& graph) {
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) TENON_RETURN_IF_ERROR(FoldWeightScales(*subgraph));
    if (node->op_type != "Conv" && node->op_type != "FusedConv") continue;
    const Tensor* weights = node->has_input(1) ? graph.StoredConstantOf(node->inputs[1]) : nullptr;
    if (weights && weights->type() == DataType::kFloat16) node->schema = nullptr;
    const Attribute* factors = node->FindAttribute(kWeightsScale);
    if (!factors) continue;
    TENON_RETURN_IF_ERROR(FoldInto(graph, *node, *factors->get<std::vector<float>>()));
    node->RemoveAttribute(kWeightsScale);
  }
  return OkStatus();
}

}  // namespace tenon
