#include "ir/rewrite.h"

#include <algorithm>

#include "ir/output_types.h"
#include "ir/pattern_spec.h"
#include "ir/rewrite_limit.h"
#include "ir/schema.h"

namespace tenon {
namespace {

// Rules that enable each other finish within a few sweeps; the limit is for rules that undo each
// other.
constexpr int kMostSweeps = 16;

// The version that the model imports for `domain`, as far as the match shows, and at least the
// first one with the operator.
int32_t OpsetFor(const Match& match, const std::string& domain, const std::string& op_type) {
  const Node& root = match.root();
  int32_t opset = root.domain == domain ? root.opset : domain.empty() ? NewestOpset("") : 1;
  const auto schemas = SchemasOf(domain, op_type);
  if (!schemas.empty()) opset = std::max(opset, schemas.front().since);
  return opset;
}

}  // namespace

ValueId Replacement::Op(std::string op_type, std::vector<ValueId> inputs,
                        std::vector<Attribute> attributes, std::string domain) {
  // Absent optional inputs at the end are not stored.
  while (!inputs.empty() && inputs.back() == ValueId::kNone) inputs.pop_back();
  const std::string& hint = edited_.value(root().outputs[0]).name;
  const ValueId output = edited_.AddValue(edited_.UnusedName(Format("{}/{}", hint, op_type)));
  NodeSpec spec;
  spec.opset = OpsetFor(*this, domain, op_type);
  if (!root().name.empty()) spec.name = Format("{}/{}", root().name, op_type);
  spec.op_type = std::move(op_type);
  spec.domain = std::move(domain);
  spec.inputs = std::move(inputs);
  spec.outputs = {output};
  spec.attributes = std::move(attributes);
  Node& node = edited_.AddNode(std::move(spec));
  node.schema = FindSchema(node.domain, node.op_type, node.opset);
  node.provider = root().provider;
  node.part = root().part;
  SetOutputTypes(edited_, node);
  return output;
}

void Replacement::TakeShape(ValueId made, ValueId from) {
  edited_.value(made).type.shape = edited_.value(from).type.shape;
}

ValueId Replacement::Constant(std::string_view hint, Tensor tensor) {
  const std::string& root_name = edited_.value(root().outputs[0]).name;
  return edited_.AddInitializer(edited_.UnusedName(Format("{}/{}", root_name, hint)),
                                std::move(tensor));
}

std::vector<Attribute> Replacement::AttributesOf(std::string_view node_name) const {
  std::vector<Attribute> copies;
  for (const Attribute& attribute : node(node_name).attributes) {
    copies.push_back(CloneAttribute(attribute));
  }
  return copies;
}

RuleSet::RuleSet(std::vector<Rule> rules) : rules_(std::move(rules)) {
  for (const Rule& rule : rules_) {
    for (const std::string_view op_type : rule.pattern.spec_->op_types) {
      by_root_[op_type].push_back(&rule);
    }
  }
}

const std::vector<const Rule*>* RuleSet::ForRoot(std::string_view op_type) const {
  const auto found = by_root_.find(op_type);
  return found == by_root_.end() ? nullptr : &found->second;
}

// One application of a rule.
class Rewriting {
 public:
  Rewriting(Graph& graph, const RewriteOptions& options) : graph_(graph), options_(options) {}

  bool Try(const Rule& rule, const Node& root) {
    if (!HasOneOutput(root)) return false;
    std::optional<Match> match = FindMatch(graph_, rule.pattern, root, options_.provider);
    if (!match || (rule.when && !rule.when(*match))) return false;
    if (!RewriteLimit::Allows(rule.name, root)) return false;
    const size_t first_new = graph_.node_capacity();
    Replacement replacement(std::move(*match), graph_);
    const ValueId result = rule.replace(replacement);
    if (result == ValueId::kNone || result == root.outputs[0]) return false;
    const bool is_new = IsNew(result, first_new);
    if (!is_new && !MayStandFor(result, root.outputs[0])) return false;
    PutInPlace(root, result, is_new);
    RemoveUnused(std::move(replacement.nodes_));
    if (options_.applied) options_.applied->push_back(rule.name);
    return true;
  }

 private:
  // A rule returns one value, so no other output of the root may be used.
  bool HasOneOutput(const Node& root) const {
    if (!root.has_output(0)) return false;
    return std::all_of(root.outputs.begin() + 1, root.outputs.end(), [&](ValueId output) {
      return output == ValueId::kNone || graph_.IsUnused(output);
    });
  }

  bool IsNew(ValueId value, size_t first_new) const {
    const NodeId producer = graph_.value(value).producer;
    return producer != NodeId::kNone && Index(producer) >= first_new;
  }

  // An output of the graph keeps a producer of its own.
  bool MayStandFor(ValueId existing, ValueId output) const {
    return graph_.value(output).output_uses == 0 ||
           (graph_.value(existing).producer != NodeId::kNone &&
            graph_.value(existing).output_uses == 0);
  }

  void PutInPlace(const Node& root, ValueId result, bool is_new) {
    const ValueId output = root.outputs[0];
    const NodeId producer = graph_.value(result).producer;
    if (!is_new) {
      graph_.ReplaceUses(output, result);
      return;
    }
    graph_.ReplaceUses(result, output);
    graph_.SetOutputValue(producer, static_cast<size_t>(graph_.value(result).output_index), output);
    graph_.node(producer).name = root.name;
  }

  // From the root on: removes nodes that lost their last use.
  void RemoveUnused(std::vector<NodeId> matched) {
    const auto is_unused = [&](NodeId id) {
      const std::vector<ValueId>& outputs = graph_.node(id).outputs;
      return std::all_of(outputs.begin(), outputs.end(), [&](ValueId output) {
        return output == ValueId::kNone || graph_.value(output).producer != id ||
               graph_.IsUnused(output);
      });
    };
    for (bool removed = true; removed;) {
      removed = false;
      for (NodeId& id : matched) {
        if (id == NodeId::kNone || !is_unused(id)) continue;
        graph_.RemoveNode(id);
        id = NodeId::kNone;
        removed = true;
      }
    }
  }

  Graph& graph_;
  const RewriteOptions& options_;
};

size_t ApplyRules(Graph& graph, const RuleSet& rules, const RewriteOptions& options) {
  Rewriting rewriting(graph, options);
  const auto apply_one = [&](const Node& root) {
    const auto* candidates = rules.ForRoot(root.op_type);
    return candidates && std::any_of(candidates->begin(), candidates->end(),
                                     [&](const Rule* rule) { return rewriting.Try(*rule, root); });
  };
  const size_t most = 4 * graph.node_capacity() + 64;
  size_t total = 0;
  for (int sweep = 0; sweep < kMostSweeps; ++sweep) {
    size_t applied = 0;
    // Nodes that rules add come later in the same sweep.
    for (size_t i = 0; i < graph.node_capacity() && total + applied < most; ++i) {
      const Node* root = graph.FindNode(static_cast<NodeId>(i));
      if (root && apply_one(*root)) ++applied;
    }
    total += applied;
    if (applied == 0) break;
  }
  return total;
}

}  // namespace tenon
