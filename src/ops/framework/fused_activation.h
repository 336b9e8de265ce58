// The activation that a fused operator names in its attributes.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/status.h"
#include "kernels/elementwise/activation.h"

namespace tenon {

// `name` is "" for none, or one of Relu, Clip, LeakyRelu, Sigmoid, Tanh, Gelu, GeluTanh, Swish (or
// Silu), HardSigmoid, HardSwish. `parameters` are, where the activation has any,
//   Clip         min, max       default: the limits of float
//   LeakyRelu    alpha          0.01
//   HardSigmoid  alpha, beta    0.2, 0.5
//   Swish        alpha          1
// and absent ones have their defaults.
// errors  kInvalidArgument  another name, or more parameters than the activation has
Result<kernels::ActivationSpec> FusedActivation(std::string_view name,
                                                std::span<const float> parameters);

// The same with a subset of the parameters; more than the activation has are ignored.
Result<kernels::ActivationSpec> FusedActivation(std::string_view name, std::optional<float> alpha,
                                                std::optional<float> beta);

// The activation of x, which is NaN where x is.
double Activated(const kernels::ActivationSpec& spec, double x);

}  // namespace tenon
