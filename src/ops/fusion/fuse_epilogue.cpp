#include "ops/fusion/fuse_epilogue.h"

#include <limits>
#include <optional>

#include "ir/graph.h"
#include "ir/scalar.h"
#include "ops/framework/unary_node.h"

namespace tenon {
namespace {

constexpr int32_t kClipWithInputs = 11;

// A bound of a Clip that is an input; `none` if it is absent, and empty if no float equals it.
std::optional<float> ClipBound(const Match& match, const Node& clip, size_t input, float none) {
  if (!clip.has_input(input)) return none;
  const Tensor* constant = match.graph().ConstantOf(clip.inputs[input]);
  const std::optional<double> bound = constant ? ScalarOf(*constant) : std::nullopt;
  // A double may not be a float exactly.
  const auto as_float = static_cast<float>(bound.value_or(0));
  return bound && as_float == *bound ? std::optional<float>(as_float) : std::nullopt;
}

}  // namespace

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
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const Node& node = match.node("activation");
  const UnaryOp op = *UnaryOpOf(node);
  if (op == UnaryOp::kClip && node.opset >= kClipWithInputs) {
    const auto low = ClipBound(match, node, 1, -kInfinity);
    const auto high = ClipBound(match, node, 2, kInfinity);
    if (!low || !high) return std::nullopt;
    return kernels::ActivationSpec{op, *low, *high};
  }
  const Result<kernels::ActivationSpec> spec = UnarySpecOf(node, op);
  return spec ? std::optional<kernels::ActivationSpec>(*spec) : std::nullopt;
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
