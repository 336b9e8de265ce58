#include "ops/conv/channels_last.h"

#include <algorithm>

#include "ir/channels_last.h"
#include "ir/graph.h"

namespace tenon {
namespace {

constexpr const char* kMicrosoft = "com.microsoft";

ValueId Turned(Replacement& r, ValueId value, size_t rank, bool to_first) {
  std::vector<Attribute> attributes;
  attributes.emplace_back("perm", to_first ? ToChannelsFirst(rank) : ToChannelsLast(rank));
  return r.Op("Transpose", {value}, std::move(attributes));
}

bool HasRank(const Match& match) {
  const SymbolicShape* x = match.shape("x");
  return x && x->rank() >= 3;
}

// com.microsoft's QLinearConv is the standard's unless it has channels_last.
Rule QLinearConvRule(bool channels_last) {
  return {.name = channels_last ? "QLinearConv, channels last" : "QLinearConv, channels first",
          .pattern = Op("QLinearConv", {Any("x")})
                         .In(kMicrosoft)
                         .With("channels_last", int64_t{channels_last})
                         .WithMoreInputs()
                         .As("node"),
          .when = channels_last ? HasRank : nullptr,
          .replace = [=](Replacement& r) {
            std::vector<ValueId> inputs = r.node("node").inputs;
            std::vector<Attribute> attributes = r.AttributesOf("node");
            std::erase_if(attributes, [](const Attribute& attribute) {
              return attribute.name == "channels_last";
            });
            if (!channels_last) {
              return r.Op("QLinearConv", std::move(inputs), std::move(attributes));
            }
            const size_t rank = r.shape("x")->rank();
            inputs[0] = Turned(r, inputs[0], rank, true);
            const ValueId y = r.Op("QLinearConv", std::move(inputs), std::move(attributes));
            return Turned(r, y, rank, false);
          }};
}

// com.microsoft's `op_type` as `target_type` in `target_domain`.
Rule LowerRule(const char* op_type, const char* target_type, const char* target_domain) {
  // The residual of a fused convolution has the output's layout.
  constexpr size_t kResidual = 3;
  return {.name = op_type,
          .pattern = Op(op_type, {Any("x")}).In(kMicrosoft).WithMoreInputs().As("node"),
          .when = HasRank,
          .replace = [=](Replacement& r) {
            const size_t rank = r.shape("x")->rank();
            std::vector<ValueId> inputs = r.node("node").inputs;
            inputs[0] = Turned(r, inputs[0], rank, true);
            if (inputs.size() > kResidual && inputs[kResidual] != ValueId::kNone) {
              inputs[kResidual] = Turned(r, inputs[kResidual], rank, true);
            }
            const ValueId y =
                r.Op(target_type, std::move(inputs), r.AttributesOf("node"), target_domain);
            return Turned(r, y, rank, false);
          }};
}

RuleSet MakeRules() {
  std::vector<Rule> rules;
  rules.push_back(LowerRule("NhwcConv", "Conv", ""));
  rules.push_back(LowerRule("NhwcFusedConv", "FusedConv", kMicrosoft));
  rules.push_back(QLinearConvRule(false));
  rules.push_back(QLinearConvRule(true));
  return RuleSet(std::move(rules));
}

}  // namespace

const RuleSet& ChannelsLastRules() {
  static const auto* const rules = new RuleSet(MakeRules());
  return *rules;
}

size_t LowerChannelsLast(Graph& graph) {
  size_t lowered = ApplyRules(graph, ChannelsLastRules(), {.provider = kNoProvider}) +
                   PutUnownedChannelsFirst(graph);
  for (size_t i = 0; i < graph.node_capacity(); ++i) {
    const Node* node = graph.FindNode(static_cast<NodeId>(i));
    if (!node) continue;
    for (Graph* subgraph : node->Subgraphs()) lowered += LowerChannelsLast(*subgraph);
  }
  return lowered;
}

}  // namespace tenon
