#include "ops/conv/nchwc_layout.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <vector>

#include "base/text.h"
#include "kernels/conv/conv_shape.h"
#include "ops/conv/channel_affine.h"
#include "ops/conv/image_moves.h"
#include "ops/conv/layout_regions.h"
#include "ops/conv/nchwc.h"
#include "ops/conv/nchwc_candidates.h"
#include "ops/framework/registry.h"

namespace tenon {
namespace {

NodeSpec Reorder(std::string op_type) {
  NodeSpec spec;
  spec.op_type = std::move(op_type);
  spec.domain = kNchwcDomain;
  spec.opset = 1;
  return spec;
}

class NchwcLayout final : public ImageLayout {
 public:
  std::string_view name() const override { return "nchwc"; }

  std::optional<LayoutCandidate> Find(const Graph& graph, const Node& node,
                                      const std::function<bool(ValueId)>& is_there) const override {
    return FindNchwcCandidate(graph, node, is_there);
  }

  double ReorderCost(const ValueType& standard) const override {
    return NchwcReorderCost(standard);
  }

  ValueType TypeOf(const ValueType& standard) const override {
    ValueType type = standard;
    type.shape = BlockedShape(*standard.shape);
    return type;
  }

  void Convert(Graph& graph, Node& node, const LayoutCandidate& candidate,
               const ValueType& standard) const override {
    const LayoutRole role = candidate.role;
    const int64_t channels = (*standard.shape)[1].value();
    if (role == LayoutRole::kAsItIs) return;
    if (role == LayoutRole::kResize) return ResizeAt(graph, node, 2);
    if (role == LayoutRole::kSplit) return SplitBlocks(graph, node);
    if (role == LayoutRole::kConcat) {
      node.SetAttribute("axis", int64_t{1});
      return;
    }
    if (role == LayoutRole::kChannelAffine) {
      MakeDepthwise(graph, node, candidate.inputs[0], channels);
    }
    node.domain = kNchwcDomain;
    node.opset = 1;
    node.schema = nullptr;
    if (role == LayoutRole::kConv || role == LayoutRole::kChannelAffine) {
      node.op_type = "NchwcConv";
      return;
    }
    node.SetAttribute("channels", channels);
    if (role == LayoutRole::kMaxPool) {
      node.op_type = "NchwcMaxPool";
    } else if (role == LayoutRole::kAveragePool) {
      node.op_type = "NchwcAveragePool";
    } else {
      node.op_type = "NchwcGlobalAveragePool";
      node.RemoveAttribute("axes");
      node.RemoveAttribute("keepdims");
      node.RemoveAttribute("noop_with_empty_axes");
      if (node.has_input(1)) graph.SetInput(node.id, 1, ValueId::kNone);
    }
  }

  // Its pieces are whole blocks but for the last.
  static void SplitBlocks(Graph& graph, Node& node) {
    std::vector<int64_t> blocks;
    for (const ValueId output : node.outputs) {
      const int64_t channels = (*graph.value(output).type.shape)[1].value();
      blocks.push_back(static_cast<int64_t>(kernels::ChannelBlocks(static_cast<size_t>(channels))));
    }
    SplitAt(graph, node, 1, blocks);
  }

  // Makes a scale and shift of each channel a convolution of it with one tap.
  static void MakeDepthwise(Graph& graph, Node& node, size_t image, int64_t channels) {
    const ChannelAffine affine = *AffineOf(graph, node, image, 4, channels);
    const auto add = [&](std::string_view what, Shape shape, const std::vector<double>& values) {
      const std::vector<float> floats(values.begin(), values.end());
      const std::string name = Format("{}/{}", graph.value(node.outputs[0]).name, what);
      return graph.AddInitializer(graph.UnusedName(name),
                                  Tensor::Of<float>(std::move(shape), std::span(floats)));
    };
    const ValueId inputs[] = {node.inputs[image], add("scale", {channels, 1, 1, 1}, affine.scale),
                              add("shift", {channels}, affine.shift)};
    for (size_t i = 0; i < std::max(std::size(inputs), node.inputs.size()); ++i) {
      graph.SetInput(node.id, i, i < std::size(inputs) ? inputs[i] : ValueId::kNone);
    }
    node.inputs.resize(std::size(inputs));
    node.attributes.clear();
    node.SetAttribute("group", channels);
  }

  NodeSpec ReorderInto(const ValueType&) const override { return Reorder("NchwcReorderInput"); }
  NodeSpec ReorderBack(const ValueType& standard) const override {
    NodeSpec spec = Reorder("NchwcReorderOutput");
    spec.attributes.emplace_back("channels", (*standard.shape)[1].value());
    return spec;
  }
};

}  // namespace

void UseNchwcLayout(Graph& graph, int32_t provider) {
  // One of each family.
  static const bool has_rows =
      HasOpRow(kNchwcDomain, "NchwcConv") && HasOpRow(kNchwcDomain, "NchwcReorderInput");
  if (!has_rows) return;
  UseLayout(graph, provider, NchwcLayout());
}

}  // namespace tenon
