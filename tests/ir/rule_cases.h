// Tests of rule sets: where each rule applies and where it must not.
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "ir/graph_builder.h"
#include "ir/rewrite.h"

namespace tenon {

struct RuleCase {
  std::string_view rule;
  bool fires;
  // Builds nodes upon the graph's input, float [2, 3], and returns the value of the last.
  std::function<ValueId(GraphBuilder&, ValueId)> build;
  // What a graph that fired looks like, from GraphText with the input named x; not compared if "".
  std::string_view expected = "";
};

// Runs every case, and fails also if a rule of the set has no case that fires or none that does
// not. `prepare` is run on each graph before the rules, e.g. inference.
void CheckRules(const RuleSet& rules, std::span<const RuleCase> cases,
                const std::function<void(Graph&)>& prepare = nullptr);

}  // namespace tenon
