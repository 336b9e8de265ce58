// Runs fusions on small graphs whether or not their operators have kernels yet.
#pragma once

#include "ir/rule_cases.h"
#include "ops/fusion/fusion.h"

namespace tenon {

// The shapes of the operators that fusions start from, for graphs in tests.
void InferForFusions(Graph& graph);

// The rules of one family of fusions, as if everything had a kernel.
RuleSet RulesOf(std::vector<Fusion> fusions);

// Applies all fusions, as if everything had a kernel, and returns the text of the graph.
std::string FusedText(Graph& graph);

}  // namespace tenon
