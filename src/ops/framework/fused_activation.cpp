#include "ops/framework/fused_activation.h"

namespace tenon {
namespace {

Result<UnaryOp> Find(std::string_view name) {
  if (name.empty()) return UnaryOp::kIdentity;
  const std::optional<UnaryOp> op = name == "Silu" ? UnaryOp::kSwish : FindUnaryOp(name);
  if (op && InfoOf(*op).Has(kFused)) return *op;
  return InvalidArgument("attribute 'activation': expected one that can be fused, got '{}'", name);
}

kernels::ActivationSpec WithDefaults(UnaryOp op) {
  const auto& [first, second] = InfoOf(op).parameters;
  return {op, first.fallback, second.fallback};
}

}  // namespace

Result<kernels::ActivationSpec> FusedActivation(std::string_view name,
                                                std::span<const float> parameters) {
  TENON_ASSIGN_OR_RETURN(const UnaryOp op, Find(name));
  const size_t count = InfoOf(op).parameter_count();
  if (parameters.size() > count) {
    return InvalidArgument("activation {}: expected at most {} parameters, got {}", name, count,
                           parameters.size());
  }
  kernels::ActivationSpec spec = WithDefaults(op);
  if (parameters.size() > 0) spec.alpha = parameters[0];
  if (parameters.size() > 1) spec.beta = parameters[1];
  return spec;
}

Result<kernels::ActivationSpec> FusedActivation(const ActivationAttrs& attrs) {
  TENON_ASSIGN_OR_RETURN(const UnaryOp op, Find(attrs.activation));
  kernels::ActivationSpec spec = WithDefaults(op);
  spec.alpha = attrs.activation_alpha.value_or(spec.alpha);
  const bool has_gamma = InfoOf(op).parameters[1].name == "gamma";
  const std::optional<float>& second = has_gamma ? attrs.activation_gamma : attrs.activation_beta;
  spec.beta = second.value_or(spec.beta);
  return spec;
}

void Activate(const kernels::ActivationSpec& spec, float* x, size_t n) {
  const kernels::Activation activate(spec);
  if (activate) activate(x, n);
}

void Activate(const kernels::ActivationSpec& spec, double* x, size_t n) {
  if (spec.op == UnaryOp::kIdentity) return;
  kernels::ApplyInDouble(spec.op, x, x, n, spec.alpha, spec.beta);
}

double Activated(const kernels::ActivationSpec& spec, double x) {
  Activate(spec, &x, 1);
  return x;
}

}  // namespace tenon
