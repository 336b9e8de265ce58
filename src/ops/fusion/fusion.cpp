#include "ops/fusion/fusion.h"

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

// Applies `change` to the graph and all of its subgraphs, and adds up what it returns.
size_t SumOverGraphs(Graph& graph, FunctionRef<size_t(Graph&)> change) {
  size_t sum = change(graph);
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) sum += SumOverGraphs(*subgraph, change);
  }
  return sum;
}

std::vector<RuleSet> MakeQuantizedFusions() {
  std::vector<RuleSet> sets;
  sets.push_back(GuardedRules(
      {QuantizedProductFusions(), QuantizedConvTransposeFusions(), QuantizedElementFusions()},
      HasOpRow));
  sets.push_back(GuardedRules(
      {IntegerProductFusions(), DynamicConvFusions(), BlockQuantizedFusions()}, HasOpRow));
  return sets;
}

}  // namespace

std::vector<FusionPass> MakeFusions(const HasKernel& has_kernel) {
  std::vector<FusionPass> passes;
  const auto add = [&](std::string_view name, std::vector<std::vector<Fusion>> families) {
    passes.push_back({name, GuardedRules(std::move(families), has_kernel)});
  };
  // Whole patterns come first: an epilogue that took one of their nodes would hide them.
  add("LayerFusion", {ActivationFusions(), NormalizationFusions()});
  add("AttentionFusion", {AttentionFusions()});
  // A residual would hide that both terms of a sum are convolutions.
  add("ConvFolding", {ConvTransposeRewrites(), ConvFoldings(), ConvSumFusions()});
  add("EpilogueFusion", {ConvFusions(), MatMulFusions()});
  add("ScalarFusion", {ScalarFusions()});
  return passes;
}

Status FuseNodes(Graph& graph, int32_t provider, PassRunner& passes) {
  static const auto* const fusions = new std::vector<FusionPass>(MakeFusions(HasOpRow));
  for (const FusionPass& fusion : *fusions) {
    TENON_RETURN_IF_ERROR(passes.Run(fusion.name, graph, [&] {
      return SumOverGraphs(graph, [&](Graph& each) {
        return ApplyRules(each, fusion.rules, {.provider = provider});
      });
    }));
  }
  return OkStatus();
}

size_t FuseNchwcNodes(Graph& graph, int32_t provider) {
  static const auto* const fusions = new RuleSet(GuardedRules({NchwcConvFusions()}, HasOpRow));
  return SumOverGraphs(
      graph, [&](Graph& each) { return ApplyRules(each, *fusions, {.provider = provider}); });
}

size_t FuseQuantizedNodes(Graph& graph, int32_t provider) {
  static const auto* const fusions = new std::vector<RuleSet>(MakeQuantizedFusions());
  return SumOverGraphs(graph, [&](Graph& each) {
    size_t changes = 0, splits = 0;
    // Each Split moves at most once, and rules may find more around it.
    do {
      for (const RuleSet& rules : *fusions) {
        changes += ApplyRules(each, rules, {.provider = provider});
      }
      splits = SplitIntegers(each, provider);
      changes += splits;
    } while (splits > 0);
    return changes;
  });
}

}  // namespace tenon
