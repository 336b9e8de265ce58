#include "ops/fused_activation.h"

#include <limits>

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

}  // namespace

Result<kernels::ActivationSpec> FusedActivation(std::string_view name,
                                                std::span<const float> parameters) {
  for (const NamedActivation& known : kActivations) {
    if (known.name != name) continue;
    if (parameters.size() > known.parameter_count) {
      return InvalidArgument("activation {}: expected at most {} parameters, got {}", name,
                             known.parameter_count, parameters.size());
    }
    kernels::ActivationSpec spec = known.defaults;
    if (parameters.size() > 0) spec.alpha = parameters[0];
    if (parameters.size() > 1) spec.beta = parameters[1];
    return spec;
  }
  return InvalidArgument("no activation '{}' can be fused", name);
}

}  // namespace tenon
