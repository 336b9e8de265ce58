// The activation that a fused operator names in its attributes.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <tuple>

#include "kernels/elementwise/activation.h"
#include "ops/framework/attributes.h"

namespace tenon {

// `name` is "" for none, or a function of base/unary_functions.inc that has the trait kFused (Silu
// is Swish). `parameters` are those of its entry there, in that order; absent ones have their
// defaults.
// errors  kInvalidArgument  another name, or more parameters than the activation has
Result<kernels::ActivationSpec> FusedActivation(std::string_view name,
                                                std::span<const float> parameters);

// An activation whose parameters have attributes of their own.
struct ActivationAttrs {
  std::string activation;
  std::optional<float> activation_alpha, activation_beta, activation_gamma;
  static constexpr auto Fields() {
    using A = ActivationAttrs;
    return std::tuple(Field("activation", &A::activation),
                      Field("activation_alpha", &A::activation_alpha),
                      Field("activation_beta", &A::activation_beta),
                      Field("activation_gamma", &A::activation_gamma));
  }
};

// Clip's bounds are alpha and beta. Parameters that the activation does not have are ignored.
// errors  kInvalidArgument  another name
Result<kernels::ActivationSpec> FusedActivation(const ActivationAttrs& attrs);

// Applies the activation to x[0, n), as its operator alone would.
void Activate(const kernels::ActivationSpec& spec, float* x, size_t n);
void Activate(const kernels::ActivationSpec& spec, double* x, size_t n);

// The activation of x.
double Activated(const kernels::ActivationSpec& spec, double x);

}  // namespace tenon
