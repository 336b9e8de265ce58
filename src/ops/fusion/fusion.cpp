#include "ops/fusion/fusion.h"

#include <limits>

#include "base/function_ref.h"
#include "ir/graph.h"
#include "ops/framework/registry.h"
#include "ops/fusion/quantized_split.h"

namespace tenon {
namespace {

Rule GuardedRule(Fusion fusion, const HasKernel& has_kernel) {
  Rule rule = std::move(fusion.rule);
  rule.when = [has_kernel, domain = fusion.domain, op_type = fusion.op_type,
               when = std::move(rule.when)](const Match& match) {
    return has_kernel(domain, op_type, match.output_type().element_type) && (!when || when(match));
  };
  return rule;
}

RuleSet GuardedRules(std::vector<std::vector<Fusion>> families, const HasKernel& has_kernel) {
  std::vector<Rule> rules;
  for (std::vector<Fusion>& family : families) {
    for (Fusion& fusion : family) {
      if (!has_kernel(fusion.domain, fusion.op_type, DataType::kUndefined)) continue;
      rules.push_back(fusion.is_typed_by_output ? GuardedRule(std::move(fusion), has_kernel)
                                                : std::move(fusion.rule));
    }
  }
  return RuleSet(std::move(rules));
}

bool HasRow(std::string_view domain, std::string_view op_type, DataType type) {
  return FindOpRow(domain, op_type, std::numeric_limits<int32_t>::max(), type) != nullptr;
}

// Calls `apply` for the graph and all of its subgraphs.
void ForEachGraph(Graph& graph, FunctionRef<void(Graph&)> apply) {
  apply(graph);
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) ForEachGraph(*subgraph, apply);
  }
}

std::vector<RuleSet> MakeQuantizedFusions() {
  std::vector<RuleSet> sets;
  sets.push_back(GuardedRules({QuantizedProductFusions(), QuantizedElementFusions()}, HasRow));
  sets.push_back(GuardedRules({IntegerProductFusions(), BlockQuantizedFusions()}, HasRow));
  return sets;
}

}  // namespace

std::vector<RuleSet> MakeFusions(const HasKernel& has_kernel) {
  std::vector<RuleSet> sets;
  // Whole patterns come first: an epilogue that took one of their nodes would hide them.
  sets.push_back(GuardedRules({ActivationFusions(), NormalizationFusions()}, has_kernel));
  sets.push_back(GuardedRules({AttentionFusions()}, has_kernel));
  // A residual would hide that both terms of a sum are convolutions.
  sets.push_back(GuardedRules({ConvFoldings(), ConvSumFusions()}, has_kernel));
  sets.push_back(GuardedRules({ConvFusions(), MatMulFusions()}, has_kernel));
  sets.push_back(GuardedRules({ScalarFusions()}, has_kernel));
  return sets;
}

void FuseNodes(Graph& graph, int32_t provider) {
  static const auto* const fusions = new std::vector<RuleSet>(MakeFusions(HasRow));
  ForEachGraph(graph, [&](Graph& each) {
    for (const RuleSet& rules : *fusions) ApplyRules(each, rules, {.provider = provider});
  });
}

void FuseNchwcNodes(Graph& graph, int32_t provider) {
  static const auto* const fusions = new RuleSet(GuardedRules({NchwcConvFusions()}, HasRow));
  ForEachGraph(graph, [&](Graph& each) { ApplyRules(each, *fusions, {.provider = provider}); });
}

void FuseQuantizedNodes(Graph& graph, int32_t provider) {
  static const auto* const fusions = new std::vector<RuleSet>(MakeQuantizedFusions());
  ForEachGraph(graph, [&](Graph& each) {
    // Each Split moves at most once, and rules may find more around it.
    do {
      for (const RuleSet& rules : *fusions) ApplyRules(each, rules, {.provider = provider});
    } while (SplitIntegers(each, provider) > 0);
  });
}

}  // namespace tenon
