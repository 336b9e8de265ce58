#include "ops/cpu_provider.h"

#include <algorithm>

#include "ops/channels_last.h"
#include "ops/composites.h"
#include "ops/fusion.h"
#include "ops/nchwc_layout.h"
#include "ops/registry.h"
#include "ops/weights_scale.h"
#include "ops/widen_narrow.h"

namespace tenon {
namespace {

// Whether the kernel of `row`, which one input's type found, takes the others' too: one of floats
// alone has nothing for those of 16 bits.
bool TakesOtherInputs(const OpRow& row, const Graph& graph, const Node& node) {
  const bool is_of_bytes_and_floats =
      node.op_type == "MatMulIntegerToFloat" || node.op_type == "QAttention";
  if (!is_of_bytes_and_floats && !(row.options.types == kFloat32Only)) return true;
  return std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId id) {
    if (id == ValueId::kNone) return false;
    const ValueType& type = graph.value(id).type;
    return type.is_tensor() &&
           (type.element_type == DataType::kFloat16 || type.element_type == DataType::kBfloat16);
  });
}

class CpuProvider final : public ExecutionProvider {
 public:
  const std::string& name() const override { return name_; }

  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    std::vector<Claim> claims;
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* node = graph.FindNode(static_cast<NodeId>(i));
      if (!node || node->provider >= 0 || IsBetterWide(graph, *node)) continue;
      const OpRow* row = FindOpRow(graph, *node);
      if (row && TakesOtherInputs(*row, graph, *node)) claims.push_back({{node->id}});
    }
    return claims;
  }

  Result<bool> AdaptUnclaimed(Graph& graph) override {
    // Widening needs the types of all values, which lowering leaves open.
    return LowerChannelsLast(graph) + ExpandComposites(graph) > 0 || WidenNarrow(graph) > 0;
  }

  Status Rewrite(Graph& graph, int32_t index) override {
    FuseNodes(graph, index);
    UseNchwcLayout(graph, index);
    return FoldWeightScales(graph);
  }

  Result<std::unique_ptr<Kernel>> CreateKernel(KernelInfo& info) override {
    const OpRow* row = FindOpRow(info.graph(), info.node());
    if (row == nullptr) return NotImplemented("the CPU provider has no kernel for it");
    return row->make(info, row->options.traits);
  }

 private:
  const std::string name_ = "CPUExecutionProvider";
};

}  // namespace

std::unique_ptr<ExecutionProvider> MakeCpuProvider() { return std::make_unique<CpuProvider>(); }

}  // namespace tenon
