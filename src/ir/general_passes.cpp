#include "ir/passes.h"

namespace tenon {
namespace {

// Each round makes few new changes possible after the first; models are stable after two or three.
constexpr int kMostRounds = 4;

}  // namespace

Status RunGeneralPasses(Graph& graph, PassOptions options) {
  const RuleSet& rules =
      options.keeps_exported_patterns ? RulesKeepingExportedPatterns() : SimplifyingRules();
  TENON_RETURN_IF_ERROR(GatherConstants(graph));
  for (int round = 0; round < kMostRounds; ++round) {
    KnownElements known;
    TENON_RETURN_IF_ERROR(InferTypes(graph, *options.shape_functions, options.inference, &known));
    size_t changes = options.keeps_exported_patterns ? FoldKnownShapes(graph, known)
                                                     : FoldKnownElements(graph, known);
    if (options.evaluator) changes += FoldConstants(graph, *options.evaluator, options.budget);
    // Constants reach the subgraphs of folded nodes.
    TENON_ASSIGN_OR_RETURN(const size_t gathered, GatherConstants(graph));
    TENON_RETURN_IF_ERROR(InlineConstantIfs(graph, &changes));
    changes += gathered + Simplify(graph, rules);
    if (options.shares_constants) changes += ShareConstants(graph);
    if (options.joins_common_subexpressions) changes += JoinCommonSubexpressions(graph);
    RemoveDeadCode(graph);
    if (changes == 0) return OkStatus();
  }
  return InferTypes(graph, *options.shape_functions, options.inference);
}

}  // namespace tenon
