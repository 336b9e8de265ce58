#include "ops/fusion/fuse_epilogue.h"

#include <optional>

#include "ir/graph.h"
#include "ops/framework/unary_node.h"

namespace tenon {

std::vector<Pattern> ActivationsOf(const Pattern& inner) {
  std::vector<std::string_view> standard, microsoft;
  for (const UnaryInfo& info : kUnaryFunctions) {
    if (info.is_operator && info.Has(kFused)) standard.push_back(info.name);
  }
  for (const UnaryAlias& alias : kUnaryAliases) {
    if (InfoOf(alias.op).Has(kFused)) microsoft.push_back(alias.op_type);
  }
  const auto bound = [](const Pattern& p) { return p.WithMoreInputs().As("activation"); };
  return {bound(OpOf(std::move(standard), {inner})),
          bound(OpOf(std::move(microsoft), {inner}).In("com.microsoft"))};
}

std::optional<kernels::ActivationSpec> KnownActivation(const Match& match) {
  return KnownUnarySpec(match.graph(), match.node("activation"));
}

bool HasKnownParameters(const Match& match) { return KnownActivation(match).has_value(); }

void AddActivation(const Match& match, std::vector<Attribute>& attributes) {
  const kernels::ActivationSpec spec = *KnownActivation(match);
  const UnaryInfo& info = InfoOf(spec.op);
  SetAttribute(attributes, "activation", std::string(info.name));
  const float parameters[] = {spec.alpha, spec.beta};
  const size_t count = info.parameter_count();
  if (count == 0) return;
  SetAttribute(attributes, "activation_params", std::vector<float>(parameters, parameters + count));
}

bool HasNoActivation(const Node& node) { return node.GetString("activation", "").empty(); }

void SetAttribute(std::vector<Attribute>& attributes, std::string name, Attribute::Held held) {
  std::erase_if(attributes, [&](const Attribute& attribute) { return attribute.name == name; });
  attributes.emplace_back(std::move(name), std::move(held));
}

bool AddsItsOwnShape(const Match& match, std::string_view name, std::string_view node) {
  const SymbolicShape* added = match.shape(name);
  const auto& before = match.graph().value(match.node(node).outputs[0]).type.shape;
  const auto& after = match.output_type().shape;
  return added && before && after && *added == *before && *added == *after;
}

}  // namespace tenon
