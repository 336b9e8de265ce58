#include "ops/framework/unary_node.h"

#include <limits>

#include "ir/scalar.h"
#include "ops/framework/attributes.h"

namespace tenon {
namespace {

constexpr int32_t kClipWithInputs = 11;

// A bound of a Clip that is an input; `none` if it is absent, and empty if no float equals it.
std::optional<float> ClipBound(const Graph& graph, const Node& clip, size_t input, float none) {
  if (!clip.has_input(input)) return none;
  const Tensor* constant = graph.ConstantOf(clip.inputs[input]);
  const std::optional<double> bound = constant ? ScalarOf(*constant) : std::nullopt;
  // A double may not be a float exactly.
  const auto as_float = static_cast<float>(bound.value_or(0));
  return bound && as_float == *bound ? std::optional<float>(as_float) : std::nullopt;
}

}  // namespace

std::optional<UnaryOp> UnaryOpOf(const Node& node) {
  const std::optional<UnaryOp> op = FindUnaryOperator(node.domain, node.op_type);
  const bool is_gelu = op == UnaryOp::kGelu;
  return is_gelu && node.GetString("approximate", "none") == "tanh" ? UnaryOp::kGeluTanh : op;
}

Result<kernels::ActivationSpec> UnarySpecOf(const Node& node, UnaryOp op) {
  const auto& [first, second] = InfoOf(op).parameters;
  kernels::ActivationSpec spec = {op, first.fallback, second.fallback};
  if (!first.name.empty()) {
    TENON_RETURN_IF_ERROR(internal::BindField(node, first.name, &spec.alpha));
  }
  if (!second.name.empty()) {
    TENON_RETURN_IF_ERROR(internal::BindField(node, second.name, &spec.beta));
  }
  return spec;
}

std::optional<kernels::ActivationSpec> KnownUnarySpec(const Graph& graph, const Node& node) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const UnaryOp op = *UnaryOpOf(node);
  if (op == UnaryOp::kClip && node.opset >= kClipWithInputs) {
    const auto low = ClipBound(graph, node, 1, -kInfinity);
    const auto high = ClipBound(graph, node, 2, kInfinity);
    if (!low || !high) return std::nullopt;
    return kernels::ActivationSpec{op, *low, *high};
  }
  const Result<kernels::ActivationSpec> spec = UnarySpecOf(node, op);
  return spec ? std::optional<kernels::ActivationSpec>(*spec) : std::nullopt;
}

}  // namespace tenon
