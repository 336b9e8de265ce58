#include "ir/rule_cases.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tenon {

void CheckRules(const RuleSet& rules, std::span<const RuleCase> cases,
                const std::function<void(Graph&)>& prepare) {
  for (size_t i = 0; i < cases.size(); ++i) {
    const RuleCase& c = cases[i];
    GraphBuilder b;
    const ValueId x = b.Input("x", DataType::kFloat, SymbolicShape{Dim(2), Dim(3)});
    // A node after the last value, so that this is not the graph's output.
    b.Output(b.Op("Abs", {c.build(b, x)}));
    if (prepare) prepare(*b.graph);
    const std::string before = GraphText(*b.graph);
    std::vector<std::string_view> applied;
    ApplyRules(*b.graph, rules, {.applied = &applied});
    const bool fired = std::count(applied.begin(), applied.end(), c.rule) > 0;
    EXPECT_EQ(fired, c.fires) << "case " << i << " of rule '" << c.rule << "':\n"
                              << before << "\nbecame\n"
                              << GraphText(*b.graph);
    if (!c.expected.empty()) {
      EXPECT_EQ(GraphText(*b.graph), c.expected) << "case " << i << " of rule '" << c.rule << "'";
    }
  }
  for (const Rule& rule : rules.rules()) {
    for (const bool fires : {true, false}) {
      EXPECT_TRUE(
          std::any_of(cases.begin(), cases.end(),
                      [&](const RuleCase& c) { return c.rule == rule.name && c.fires == fires; }))
          << "rule '" << rule.name << "' has no case that " << (fires ? "fires" : "must not fire");
    }
  }
}

}  // namespace tenon
