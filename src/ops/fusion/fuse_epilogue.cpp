#include "ops/fusion/fuse_epilogue.h"

#include <limits>
#include <optional>

#include "ir/graph.h"
#include "ir/scalar.h"
#include "ir/schema.h"

namespace tenon {
namespace {

// A bound of a Clip, which is an attribute before opset 11 and an input since; none if no float
// says it.
std::optional<float> ClipBound(const Match& match, const Node& clip, size_t input,
                               const char* attribute, float none) {
  if (clip.opset < 11) return clip.GetFloat(attribute, none);
  if (!clip.has_input(input)) return none;
  const Tensor* constant = match.graph().ConstantOf(clip.inputs[input]);
  const std::optional<double> bound = constant ? ScalarOf(*constant) : std::nullopt;
  // A double need not be a float.
  const auto as_float = static_cast<float>(bound.value_or(0));
  return bound && as_float == *bound ? std::optional<float>(as_float) : std::nullopt;
}

float FloatOrDefault(const Node& node, const char* attribute) {
  const OpAttribute* formal = node.schema ? node.schema->FindAttribute(attribute) : nullptr;
  return node.GetFloat(attribute, formal ? formal->default_float : 0);
}

std::optional<std::vector<float>> ParametersOf(const Match& match, const Node& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  if (node.op_type == "Clip") {
    const auto low = ClipBound(match, node, 1, "min", -kInfinity);
    const auto high = ClipBound(match, node, 2, "max", kInfinity);
    if (!low || !high) return std::nullopt;
    return std::vector<float>{*low, *high};
  }
  if (node.op_type == "LeakyRelu" || node.op_type == "Swish") {
    return std::vector<float>{FloatOrDefault(node, "alpha")};
  }
  if (node.op_type == "HardSigmoid") {
    return std::vector<float>{FloatOrDefault(node, "alpha"), FloatOrDefault(node, "beta")};
  }
  return std::vector<float>();
}

}  // namespace

Pattern ActivationOf(Pattern inner) {
  return OpOf({"Relu", "Clip", "LeakyRelu", "HardSigmoid", "HardSwish", "Sigmoid", "Tanh", "Gelu",
               "Swish"},
              {std::move(inner)})
      .WithMoreInputs()
      .As("activation");
}

bool HasKnownParameters(const Match& match) {
  return ParametersOf(match, match.node("activation")).has_value();
}

void AddActivation(const Match& match, std::vector<Attribute>& attributes) {
  const Node& node = match.node("activation");
  std::string name = node.op_type;
  if (name == "Gelu" && node.GetString("approximate", "none") == "tanh") name = "GeluTanh";
  SetAttribute(attributes, "activation", std::move(name));
  std::vector<float> parameters = *ParametersOf(match, node);
  if (!parameters.empty()) SetAttribute(attributes, "activation_params", std::move(parameters));
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
