#include "ops/framework/fused_activation.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace tenon {
namespace {

using kernels::Activation;

struct NamedActivation {
  std::string_view name;
  kernels::ActivationSpec defaults;
  size_t parameter_count;
};

constexpr NamedActivation kActivations[] = {
    {"", {Activation::kNone}, 0},
    {"Relu", {Activation::kRelu}, 0},
    {"Clip",
     {Activation::kClip, std::numeric_limits<float>::lowest(), std::numeric_limits<float>::max()},
     2},
    {"LeakyRelu", {Activation::kLeakyRelu, 0.01f}, 1},
    {"Sigmoid", {Activation::kSigmoid}, 0},
    {"Tanh", {Activation::kTanh}, 0},
    {"Gelu", {Activation::kGelu}, 0},
    {"GeluTanh", {Activation::kGeluTanh}, 0},
    {"Swish", {Activation::kSilu, 1}, 1},
    {"Silu", {Activation::kSilu, 1}, 1},
    {"HardSigmoid", {Activation::kHardSigmoid, 0.2f, 0.5f}, 2},
    {"HardSwish", {Activation::kHardSwish}, 0},
};

Result<const NamedActivation*> Find(std::string_view name) {
  for (const NamedActivation& known : kActivations) {
    if (known.name == name) return &known;
  }
  return InvalidArgument("attribute 'activation': expected one that can be fused, got '{}'", name);
}

}  // namespace

Result<kernels::ActivationSpec> FusedActivation(std::string_view name,
                                                std::span<const float> parameters) {
  TENON_ASSIGN_OR_RETURN(const NamedActivation* known, Find(name));
  if (parameters.size() > known->parameter_count) {
    return InvalidArgument("activation {}: expected at most {} parameters, got {}", name,
                           known->parameter_count, parameters.size());
  }
  kernels::ActivationSpec spec = known->defaults;
  if (parameters.size() > 0) spec.alpha = parameters[0];
  if (parameters.size() > 1) spec.beta = parameters[1];
  return spec;
}

Result<kernels::ActivationSpec> FusedActivation(std::string_view name, std::optional<float> alpha,
                                                std::optional<float> beta) {
  TENON_ASSIGN_OR_RETURN(const NamedActivation* known, Find(name));
  kernels::ActivationSpec spec = known->defaults;
  if (alpha && known->parameter_count > 0) spec.alpha = *alpha;
  if (beta && known->parameter_count > 1) spec.beta = *beta;
  return spec;
}

double Activated(const kernels::ActivationSpec& spec, double x) {
  const double alpha = spec.alpha, beta = spec.beta;
  // Clamps that keep NaN, like those of the kernels.
  const auto clamp = [](double value, double least, double most) {
    return value < least ? least : value > most ? most : value;
  };
  switch (spec.kind) {
    case kernels::Activation::kNone:
      return x;
    case kernels::Activation::kRelu:
      return x < 0 ? 0 : x;
    case kernels::Activation::kClip:
      return clamp(x, alpha, beta);
    case kernels::Activation::kLeakyRelu:
      return x < 0 ? alpha * x : x;
    case kernels::Activation::kHardSigmoid:
      return clamp(alpha * x + beta, 0, 1);
    case kernels::Activation::kHardSwish:
      return x * clamp(x / 6 + 0.5, 0, 1);
    case kernels::Activation::kSigmoid:
      return 1 / (1 + std::exp(-x));
    case kernels::Activation::kTanh:
      return std::tanh(x);
    case kernels::Activation::kGelu:
      return x / 2 * (1 + std::erf(x / std::numbers::sqrt2));
    case kernels::Activation::kGeluTanh:
      return x / 2 * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case kernels::Activation::kSilu:
      return x / (1 + std::exp(-alpha * x));
  }
  return x;
}

}  // namespace tenon
