// Rewrite rules: a pattern and what replaces it.
//
//   const Pattern x = Any("x");
//   Rule{.name = "swish",
//        .pattern = Op("Mul", {x, Op("Sigmoid", {x})}),
//        .replace = [](Replacement& r) { return r.Op("Swish", {r["x"]}); }}
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ir/match.h"

namespace tenon {

// Builds the replacement of a match. New nodes have the match's provider, and a name derived from
// its root.
class Replacement : public Match {
 public:
  // A new node, and its only output. Its opset is the one that the model imports, or the first one
  // with the operator if that is later.
  ValueId Op(std::string op_type, std::vector<ValueId> inputs,
             std::vector<Attribute> attributes = {}, std::string domain = "");
  // Gives a value that Op made the shape of `from`, if that is known. Only what replaces the root
  // has a shape otherwise, that of the root's output.
  void TakeShape(ValueId made, ValueId from);
  // A new initializer, named after the root with `hint`.
  ValueId Constant(std::string_view hint, Tensor tensor);
  // The node, which the pattern does not name, is replaced, too: it is removed if nothing else uses
  // its outputs.
  void Covers(const Node& node) { nodes_.push_back(node.id); }
  // Copies of the attributes of a matched node.
  std::vector<Attribute> AttributesOf(std::string_view node_name) const;

 private:
  friend class Rewriting;
  Replacement(Match match, Graph& graph) : Match(std::move(match)), edited_(graph) {}
  Graph& edited_;
};

struct Rule {
  std::string_view name;
  Pattern pattern;  // a node pattern
  // Conditions that the pattern cannot express; none if null.
  std::function<bool(const Match&)> when = nullptr;
  // Returns the value that replaces the root's first output: the output of a new node, or an
  // existing value (without effect if an output of the graph would become an input, an initializer
  // or another output). kNone leaves the graph unchanged; nothing may have been made then.
  std::function<ValueId(Replacement&)> replace;
};

// Rules in order of preference.
class RuleSet {
 public:
  explicit RuleSet(std::vector<Rule> rules);
  RuleSet(RuleSet&&) = default;
  const std::vector<Rule>& rules() const { return rules_; }
  // The rules whose root may be a node of this type; null if there are none.
  const std::vector<const Rule*>* ForRoot(std::string_view op_type) const;

 private:
  std::vector<Rule> rules_;
  std::unordered_map<std::string_view, std::vector<const Rule*>> by_root_;
};

struct RewriteOptions {
  // Only nodes of this provider; all nodes if none is given.
  std::optional<int32_t> provider;
  // Receives the name of each rule that was applied, in order; may be null.
  std::vector<std::string_view>* applied = nullptr;
};

// Applies the rules to `graph`, without its subgraphs, until none matches or a limit is reached,
// and returns the number of applications. Values keep their ids and types: a root's output becomes
// the output of the node that replaces it. Takes time linear in the number of nodes unless rules
// undo each other.
size_t ApplyRules(Graph& graph, const RuleSet& rules, const RewriteOptions& options = {});

}  // namespace tenon
