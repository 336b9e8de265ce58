#include "ops/conv/image_moves.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"
#include "ir/schema.h"
#include "ops/framework/attributes.h"

namespace tenon {
namespace {

constexpr size_t kImageRank = 4;

enum ResizeInput : size_t { kX, kRoi, kScales, kSizes };

// Makes the node one of opset `least`, which has the form that it is about to get, or of a later
// one.
void RaiseOpset(Node& node, int32_t least) {
  node.opset = std::max(node.opset, least);
  node.schema = FindSchema(node.domain, node.op_type, node.opset);
}

// The axes that the node's scales or sizes are for, from 0 on.
std::vector<int64_t> GivenAxes(const Node& resize) {
  std::vector<int64_t> axes = resize.GetInts("axes");
  if (axes.empty()) axes = {0, 1, 2, 3};
  for (int64_t& axis : axes) axis += axis < 0 ? int64_t{kImageRank} : 0;
  return axes;
}

const Tensor* ConstantAt(const Graph& graph, const Node& node, size_t i) {
  const Tensor* constant = node.has_input(i) ? graph.ConstantOf(node.inputs[i]) : nullptr;
  return constant && constant->size() > 0 ? constant : nullptr;
}

// The input with the scales, or that with the sizes; nothing if it is not known.
std::optional<size_t> FactorsOf(const Graph& graph, const Node& resize) {
  const bool has_scales = ConstantAt(graph, resize, kScales) != nullptr;
  const bool has_sizes = ConstantAt(graph, resize, kSizes) != nullptr;
  if (has_scales == has_sizes) return std::nullopt;
  return has_scales ? kScales : kSizes;
}

// Elements `chosen` of the constant.
template <class T>
Tensor Chosen(const Tensor& constant, const std::vector<size_t>& chosen) {
  std::vector<T> values;
  for (const size_t i : chosen) values.push_back(constant.values<T>()[i]);
  return Tensor::Of<T>(Shape({static_cast<int64_t>(values.size())}), std::span<const T>(values));
}

}  // namespace

bool IsChannelSplit(const Node& node) {
  if (!node.domain.empty() || node.op_type != "Split") return false;
  const int64_t axis = node.GetInt("axis", 0);
  if (axis != 1 && axis != 1 - int64_t{kImageRank}) return false;
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (!node.has_output(i)) return false;
  }
  return true;
}

void SplitAt(Graph& graph, Node& node, int64_t axis, const std::vector<int64_t>& sizes) {
  constexpr int32_t kSizesAsInput = 13;
  RaiseOpset(node, kSizesAsInput);
  node.RemoveAttribute("split");
  node.RemoveAttribute("num_outputs");
  node.SetAttribute("axis", axis);
  const std::string name = graph.UnusedName(graph.value(node.outputs[0]).name + "/split");
  const Shape shape({static_cast<int64_t>(sizes.size())});
  graph.SetInput(node.id, 1,
                 graph.AddInitializer(name, Tensor::Of<int64_t>(shape, std::span(sizes))));
}

bool IsSpatialResize(const Graph& graph, const Node& node) {
  constexpr int32_t kFirst = 11;
  if (!node.domain.empty() || node.op_type != "Resize" || node.opset < kFirst ||
      node.GetString("coordinate_transformation_mode", "half_pixel") == "tf_crop_and_resize" ||
      node.GetString("keep_aspect_ratio_policy", "stretch") != "stretch") {
    return false;
  }
  const std::optional<size_t> factors = FactorsOf(graph, node);
  const std::optional<SymbolicShape>& x = graph.value(node.inputs[kX]).type.shape;
  if (!factors || !x || x->rank() != kImageRank) return false;
  const Tensor& constant = *graph.ConstantOf(node.inputs[*factors]);
  const std::vector<int64_t> axes = GivenAxes(node);
  if (axes.size() != static_cast<size_t>(constant.size())) return false;
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i] >= 2) continue;
    const bool stays = *factors == kScales ? constant.values<float>()[i] == 1
                                           : (*x)[static_cast<size_t>(axes[i])] ==
                                                 Dim(constant.values<int64_t>()[i]);
    if (!stays) return false;
  }
  return true;
}

void ResizeAt(Graph& graph, Node& node, int64_t height_axis) {
  constexpr int32_t kAxesAsAttribute = 19;
  const size_t factors = *FactorsOf(graph, node);
  const std::vector<int64_t> given = GivenAxes(node);
  std::vector<size_t> chosen;
  std::vector<int64_t> axes;
  for (size_t i = 0; i < given.size(); ++i) {
    if (given[i] < 2) continue;
    chosen.push_back(i);
    axes.push_back(given[i] - 2 + height_axis);
  }
  const Tensor& constant = *graph.ConstantOf(node.inputs[factors]);
  Tensor kept =
      factors == kScales ? Chosen<float>(constant, chosen) : Chosen<int64_t>(constant, chosen);
  const std::string name = graph.UnusedName(graph.value(node.inputs[factors]).name + "/spatial");
  RaiseOpset(node, kAxesAsAttribute);
  node.SetAttribute("axes", std::move(axes));
  for (const size_t i : {kRoi, kScales, kSizes}) {
    if (node.has_input(i)) graph.SetInput(node.id, i, ValueId::kNone);
  }
  graph.SetInput(node.id, factors, graph.AddInitializer(name, std::move(kept)));
}

}  // namespace tenon
