#include "ops/conv/nchwc_layout.h"

#include "ops/conv/layout_regions.h"
#include "ops/conv/nchwc.h"
#include "ops/conv/nchwc_candidates.h"

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

  void Convert(Graph& graph, Node& node, LayoutRole role,
               const ValueType& standard) const override {
    if (role == LayoutRole::kAsItIs) return;
    if (role == LayoutRole::kConcat) {
      node.SetAttribute("axis", int64_t{1});
      return;
    }
    node.domain = kNchwcDomain;
    node.opset = 1;
    node.schema = nullptr;
    if (role == LayoutRole::kConv) {
      node.op_type = "NchwcConv";
      return;
    }
    node.SetAttribute("channels", (*standard.shape)[1].value());
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

  NodeSpec ReorderInto(const ValueType&) const override { return Reorder("NchwcReorderInput"); }
  NodeSpec ReorderBack(const ValueType& standard) const override {
    NodeSpec spec = Reorder("NchwcReorderOutput");
    spec.attributes.emplace_back("channels", (*standard.shape)[1].value());
    return spec;
  }
};

}  // namespace

void UseNchwcLayout(Graph& graph, int32_t provider) { UseLayout(graph, provider, NchwcLayout()); }

}  // namespace tenon
