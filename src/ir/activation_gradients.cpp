// The gradients of activations. Operators of com.microsoft compute those that networks use most,
// in one pass, where they may.
#include <cmath>

#include "ir/gradient_rules.h"

namespace tenon {
namespace {

ValueId Sigmoid(Builder& b, ValueId x) { return b.Op("Sigmoid", {x}); }

// Whether x > bound.
ValueId IsAbove(Builder& b, ValueId x, double bound) {
  return b.Op("Greater", {x, b.Scalar(bound, x)});
}

Result<Gradients> Relu(Builder& b, const Inputs& in) {
  if (b.MayUseKernels(in.x(0))) {
    return Gradients{b.Op("ReluGrad", {in.dy(), in.y()}, {}, kMicrosoft)};
  }
  return Gradients{Where(b, IsAbove(b, in.x(0), 0), in.dy(), b.Scalar(0, in.x(0)))};
}

// y (1 - y) dy
Result<Gradients> OfSigmoid(Builder& b, const Inputs& in) {
  if (b.MayUseKernels(in.x(0))) {
    return Gradients{b.Op("SigmoidGrad", {in.dy(), in.y()}, {}, kMicrosoft)};
  }
  return Gradients{Mul(b, in.dy(), Sub(b, in.y(), Square(b, in.y())))};
}

// (1 - y^2) dy
Result<Gradients> Tanh(Builder& b, const Inputs& in) {
  if (b.MayUseKernels(in.x(0))) {
    return Gradients{b.Op("TanhGrad", {in.dy(), in.y()}, {}, kMicrosoft)};
  }
  return Gradients{Sub(b, in.dy(), Mul(b, in.dy(), Square(b, in.y())))};
}

Result<Gradients> LeakyRelu(Builder& b, const Inputs& in) {
  const float alpha = in.node.GetFloat("alpha", 0.01f);
  // The operator tells the sign of x by that of y.
  if (alpha > 0 && b.MayUseKernels(in.x(0))) {
    return Gradients{b.Op("LeakyReluGrad", {in.dy(), in.y()}, Attributes(Attribute("alpha", alpha)),
                          kMicrosoft)};
  }
  return Gradients{Where(b, IsAbove(b, in.x(0), 0), in.dy(), Times(b, in.dy(), alpha))};
}

Result<Gradients> PRelu(Builder& b, const Inputs& in) {
  const ValueId is_above = IsAbove(b, in.x(0), 0);
  const ValueId below = Where(b, is_above, b.Scalar(0, in.x(0)), Mul(b, in.dy(), in.x(0)));
  return Gradients{Where(b, is_above, in.dy(), Mul(b, in.dy(), in.x(1))),
                   SumTo(b, in, below, in.x(1))};
}

Result<Gradients> ThresholdedRelu(Builder& b, const Inputs& in) {
  const ValueId is_above = IsAbove(b, in.x(0), in.node.GetFloat("alpha", 1));
  return Gradients{Where(b, is_above, in.dy(), b.Scalar(0, in.x(0)))};
}

// y = alpha (exp(x) - 1) below 0: the slope is y + alpha.
Result<Gradients> Elu(Builder& b, const Inputs& in) {
  const ValueId below = Mul(b, in.dy(), Plus(b, in.y(), in.node.GetFloat("alpha", 1)));
  return Gradients{Where(b, IsAbove(b, in.x(0), 0), in.dy(), below)};
}

// The same, times gamma.
Result<Gradients> Selu(Builder& b, const Inputs& in) {
  const double alpha = in.node.GetFloat("alpha", 1.67326319217681884765625f);
  const double gamma = in.node.GetFloat("gamma", 1.05070102214813232421875f);
  const ValueId below = Mul(b, in.dy(), Plus(b, in.y(), alpha * gamma));
  return Gradients{Where(b, IsAbove(b, in.x(0), 0), Times(b, in.dy(), gamma), below)};
}

// y = alpha (exp(x / alpha) - 1) below 0.
Result<Gradients> Celu(Builder& b, const Inputs& in) {
  const double alpha = in.node.GetFloat("alpha", 1);
  const ValueId below = Mul(b, in.dy(), Plus(b, Times(b, in.y(), 1 / alpha), 1));
  return Gradients{Where(b, IsAbove(b, in.x(0), 0), in.dy(), below)};
}

Result<Gradients> Softplus(Builder& b, const Inputs& in) {
  return Gradients{Mul(b, in.dy(), Sigmoid(b, in.x(0)))};
}

// y = x / (1 + |x|)
Result<Gradients> Softsign(Builder& b, const Inputs& in) {
  return Gradients{Div(b, in.dy(), Square(b, Plus(b, b.Op("Abs", {in.x(0)}), 1)))};
}

// y = max(0, min(1, alpha x + beta))
Result<Gradients> HardSigmoid(Builder& b, const Inputs& in) {
  const ValueId one = b.Scalar(1, in.y());
  const ValueId is_inside = b.Op("And", {IsAbove(b, in.y(), 0), b.Op("Less", {in.y(), one})});
  const ValueId inside = Times(b, in.dy(), in.node.GetFloat("alpha", 0.2f));
  return Gradients{Where(b, is_inside, inside, b.Scalar(0, in.y()))};
}

// y = x max(0, min(1, x / 6 + 1/2))
Result<Gradients> HardSwish(Builder& b, const Inputs& in) {
  const ValueId x = in.x(0);
  const ValueId inside = Mul(b, in.dy(), Plus(b, Times(b, x, 1.0 / 3), 0.5));
  const ValueId is_low = b.Op("Less", {x, b.Scalar(-3, x)});
  return Gradients{Where(b, is_low, b.Scalar(0, x), Where(b, IsAbove(b, x, 3), in.dy(), inside))};
}

// y = x tanh(softplus(x))
Result<Gradients> Mish(Builder& b, const Inputs& in) {
  const ValueId x = in.x(0), t = b.Op("Tanh", {b.Op("Softplus", {x})});
  const ValueId bend = Sub(b, Sigmoid(b, x), Mul(b, Sigmoid(b, x), Square(b, t)));
  return Gradients{Mul(b, in.dy(), Add(b, t, Mul(b, x, bend)))};
}

// The derivative of x sigmoid(alpha x): s + alpha x s (1 - s).
ValueId SwishSlope(Builder& b, ValueId x, double alpha) {
  const ValueId scaled = Times(b, x, alpha), s = Sigmoid(b, scaled);
  return Add(b, s, Mul(b, scaled, Sub(b, s, Square(b, s))));
}

Result<Gradients> Swish(Builder& b, const Inputs& in) {
  return Gradients{Mul(b, in.dy(), SwishSlope(b, in.x(0), in.node.GetFloat("alpha", 1)))};
}

Result<Gradients> QuickGelu(Builder& b, const Inputs& in) {
  const float alpha = in.node.GetFloat("alpha", 1.702f);
  if (b.MayUseKernels(in.x(0))) {
    return Gradients{b.Op("QuickGeluGrad", {in.dy(), in.x(0)},
                          Attributes(Attribute("alpha", alpha)), kMicrosoft)};
  }
  return Gradients{Mul(b, in.dy(), SwishSlope(b, in.x(0), alpha))};
}

// The derivative of x P(x), P being the normal distribution: P(x) + x exp(-x^2 / 2) / sqrt(2 pi).
ValueId GeluSlope(Builder& b, ValueId x) {
  const ValueId error = b.Op("Erf", {Times(b, x, M_SQRT1_2)});
  const ValueId bell = b.Op("Exp", {Times(b, Square(b, x), -0.5)});
  constexpr double kHeight = M_2_SQRTPI * M_SQRT1_2 / 2;
  return Add(b, Times(b, Plus(b, error, 1), 0.5), Mul(b, x, Times(b, bell, kHeight)));
}

// The derivative of x (1 + t) / 2 with t = tanh(u) and u = sqrt(2 / pi) (x + 0.044715 x^3).
ValueId TanhGeluSlope(Builder& b, ValueId x) {
  constexpr double kCubic = 0.044715;
  constexpr double kRoot = M_2_SQRTPI * M_SQRT1_2;
  const ValueId square = Square(b, x);
  const ValueId u = Times(b, Mul(b, x, Plus(b, Times(b, square, kCubic), 1)), kRoot);
  const ValueId t = b.Op("Tanh", {u});
  const ValueId u_slope = Times(b, Plus(b, Times(b, square, 3 * kCubic), 1), kRoot);
  const ValueId bend = Mul(b, Sub(b, b.Scalar(1, x), Square(b, t)), Mul(b, x, u_slope));
  return Times(b, Add(b, Plus(b, t, 1), bend), 0.5);
}

ValueId GeluGradient(Builder& b, ValueId x, ValueId dy, bool is_tanh) {
  if (b.MayUseKernels(x)) {
    return b.Op(is_tanh ? "FastGeluGrad" : "GeluGrad", {dy, x}, {}, kMicrosoft);
  }
  return Mul(b, dy, is_tanh ? TanhGeluSlope(b, x) : GeluSlope(b, x));
}

Result<Gradients> Gelu(Builder& b, const Inputs& in) {
  const bool is_tanh = in.node.GetString("approximate", "none") == "tanh";
  return Gradients{GeluGradient(b, in.x(0), in.dy(), is_tanh)};
}

// FastGelu, BiasGelu: of x + bias.
Result<Gradients> BiasedGelu(Builder& b, const Inputs& in, bool is_tanh) {
  if (in.x(1) == ValueId::kNone) return Gradients{GeluGradient(b, in.x(0), in.dy(), is_tanh)};
  const ValueId dx = GeluGradient(b, Add(b, in.x(0), in.x(1)), in.dy(), is_tanh);
  return Gradients{dx, SumTo(b, in, dx, in.x(1))};
}

Result<Gradients> FastGelu(Builder& b, const Inputs& in) { return BiasedGelu(b, in, true); }
Result<Gradients> BiasGelu(Builder& b, const Inputs& in) { return BiasedGelu(b, in, false); }

constexpr NamedGradientRule kRules[] = {
    {"BiasGelu", BiasGelu, 1, kMicrosoft},
    {"Celu", Celu},
    {"Elu", Elu},
    {"FastGelu", FastGelu, 1, kMicrosoft},
    {"Gelu", Gelu},
    {"Gelu", Gelu, 1, kMicrosoft},
    {"HardSigmoid", HardSigmoid},
    {"HardSwish", HardSwish},
    {"LeakyRelu", LeakyRelu},
    {"Mish", Mish},
    {"PRelu", PRelu, 7},
    {"QuickGelu", QuickGelu, 1, kMicrosoft},
    {"Relu", Relu},
    {"Selu", Selu},
    {"Sigmoid", OfSigmoid},
    {"Softplus", Softplus},
    {"Softsign", Softsign},
    {"Swish", Swish},
    {"Tanh", Tanh},
    {"ThresholdedRelu", ThresholdedRelu},
};

}  // namespace

std::span<const NamedGradientRule> ActivationGradients() { return kRules; }

}  // namespace tenon
