#include "ops/framework/unary_node.h"

#include "ops/framework/attributes.h"

namespace tenon {

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

}  // namespace tenon
