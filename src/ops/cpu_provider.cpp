#include "ops/cpu_provider.h"

#include "ops/channels_last.h"
#include "ops/composites.h"
#include "ops/fusion.h"
#include "ops/nchwc_layout.h"
#include "ops/registry.h"
#include "ops/weights_scale.h"
#include "ops/widen_narrow.h"

namespace tenon {
namespace {

class CpuProvider final : public ExecutionProvider {
 public:
  const std::string& name() const override { return name_; }

  Result<std::vector<Claim>> GetCapability(const Graph& graph) override {
    std::vector<Claim> claims;
    for (size_t i = 0; i < graph.node_capacity(); ++i) {
      const Node* node = graph.FindNode(static_cast<NodeId>(i));
      if (!node || node->provider >= 0 || IsBetterWide(graph, *node)) continue;
      if (FindOpRow(graph, *node)) claims.push_back({{node->id}});
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
