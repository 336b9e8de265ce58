// Activations that exporters write as several operators.
#include <cmath>

#include "ir/graph.h"
#include "ir/scalar.h"
#include "ops/framework/unary_node.h"
#include "ops/fusion/fusion.h"

namespace tenon {
namespace {

constexpr double kSqrt2 = 1.4142135623730951;
constexpr double kSqrt2OverPi = 0.7978845608028654;

// The product of three factors, in any order of multiplication.
Pattern Product(const Pattern& a, const Pattern& b, const Pattern& c) {
  return OneOf({Op("Mul", {Op("Mul", {a, b}), c}), Op("Mul", {Op("Mul", {a, c}), b}),
                Op("Mul", {Op("Mul", {b, c}), a})});
}

// A rule needs a single node at its root, so each order is a pattern of its own.
std::vector<Pattern> Products(const Pattern& a, const Pattern& b, const Pattern& c) {
  return {Op("Mul", {Op("Mul", {a, b}), c}), Op("Mul", {Op("Mul", {a, c}), b}),
          Op("Mul", {Op("Mul", {b, c}), a})};
}

// 1 + erf(x / sqrt(2))
Pattern OnePlusErf(const Pattern& x) {
  const Pattern scaled =
      OneOf({Op("Div", {x, Scalar(kSqrt2)}), Op("Mul", {x, Scalar(1 / kSqrt2)})});
  return Op("Add", {Op("Erf", {scaled}), Scalar(1)});
}

// 1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))
Pattern OnePlusTanh(const Pattern& x) {
  const Pattern square = OneOf({Op("Mul", {x, x}), Op("Pow", {x, Scalar(2)})});
  const Pattern cube = OneOf({Op("Pow", {x, Scalar(3)}), Op("Mul", {x, square})});
  const Pattern sum = Op(
      "Add", {x, OneOf({Op("Mul", {cube, Scalar(0.044715)}), Product(x, square, Scalar(0.044715)),
                        Product(x, x, Op("Mul", {x, Scalar(0.044715)}))})});
  const Pattern factored = Op("Add", {Op("Mul", {square, Scalar(0.044715)}), Scalar(1)});
  const Pattern inner =
      OneOf({Op("Mul", {sum, Scalar(kSqrt2OverPi)}), Product(x, Scalar(kSqrt2OverPi), factored)});
  return Op("Add", {Op("Tanh", {inner}), Scalar(1)});
}

ValueId MakeGelu(Replacement& r, std::string approximate) {
  std::vector<Attribute> attributes;
  attributes.emplace_back("approximate", std::move(approximate));
  return r.Op("Gelu", {r["x"]}, std::move(attributes));
}

// The attribute alpha is a float; an alpha of type double may not be one exactly.
bool HasFloatAlpha(const Match& match) {
  return !match.constant("alpha") ||
         static_cast<float>(match.scalar("alpha")) == match.scalar("alpha");
}

ValueId MakeSwish(Replacement& r) {
  std::vector<Attribute> attributes;
  attributes.emplace_back("alpha", r.constant("alpha") ? static_cast<float>(r.scalar("alpha")) : 1);
  return r.Op("Swish", {r["x"]}, std::move(attributes));
}

// HardSigmoid's attribute alpha is a float, and 1/6 as a float is not 1/6 as a double.
bool IsNotOfDoubles(const Match& match) {
  return match.output_type().element_type != DataType::kDouble;
}

// Clip between constants.
bool ClipsToSix(const Match& match) {
  const Node& clip = match.node("clip");
  if (clip.opset < 11) return clip.GetFloat("min", -1) == 0 && clip.GetFloat("max", -1) == 6;
  const auto is = [&](size_t i, double value) {
    const Tensor* bound = clip.has_input(i) ? match.graph().ConstantOf(clip.inputs[i]) : nullptr;
    return bound && ScalarOf(*bound) == value;
  };
  return is(1, 0) && is(2, 6);
}

bool IsHardSwishGate(const Node& node) {
  const Result<kernels::ActivationSpec> gate = UnarySpecOf(node, UnaryOp::kHardSigmoid);
  return gate && std::abs(gate->alpha - 1.0F / 6) < 1e-6F && gate->beta == 0.5F;
}

ValueId MakeHardSigmoid(Replacement& r) {
  std::vector<Attribute> attributes;
  attributes.emplace_back("alpha", 1.0F / 6);
  attributes.emplace_back("beta", 0.5F);
  return r.Op("HardSigmoid", {r["x"]}, std::move(attributes));
}

}  // namespace

std::vector<Fusion> ActivationFusions() {
  const Pattern x = Any("x");
  const Pattern sixth = Scalar(1.0 / 6);
  const Pattern relu6 = Op("Clip", {Op("Add", {x, Scalar(3)})}).WithMoreInputs().As("clip");
  std::vector<Fusion> fusions;
  const auto add = [&](std::string_view op_type, Rule rule) {
    fusions.push_back({"", op_type, std::move(rule)});
  };
  for (const Pattern& pattern : Products(x, Scalar(0.5), OnePlusErf(x))) {
    add("Gelu", {.name = "gelu", .pattern = pattern, .replace = [](Replacement& r) {
                   return MakeGelu(r, "none");
                 }});
  }
  for (const Pattern& pattern : Products(x, Scalar(0.5), OnePlusTanh(x))) {
    add("Gelu", {.name = "gelu tanh", .pattern = pattern, .replace = [](Replacement& r) {
                   return MakeGelu(r, "tanh");
                 }});
  }
  add("Swish",
      {.name = "swish",
       .pattern = Op("Mul", {x, Op("Sigmoid", {OneOf({Op("Mul", {x, Scalar("alpha")}), x})})}),
       .when = HasFloatAlpha,
       .replace = MakeSwish});
  add("Mish", {.name = "mish",
               .pattern = Op("Mul", {x, Op("Tanh", {Op("Softplus", {x})})}),
               .replace = [](Replacement& r) { return r.Op("Mish", {r["x"]}); }});
  std::vector<Pattern> hard_swishes = Products(x, relu6, sixth);
  hard_swishes.push_back(Op("Div", {Op("Mul", {x, relu6}), Scalar(6)}));
  hard_swishes.push_back(Op("Mul", {x, Op("Div", {relu6, Scalar(6)})}));
  for (const Pattern& pattern : hard_swishes) {
    add("HardSwish", {.name = "hard swish",
                      .pattern = pattern,
                      .when = ClipsToSix,
                      .replace = [](Replacement& r) { return r.Op("HardSwish", {r["x"]}); }});
  }
  add("HardSwish", {.name = "hard swish of hard sigmoid",
                    .pattern = Op("Mul", {x, Op("HardSigmoid", {x}).Where(IsHardSwishGate)}),
                    .when = IsNotOfDoubles,
                    .replace = [](Replacement& r) { return r.Op("HardSwish", {r["x"]}); }});
  for (const Pattern& pattern : {Op("Div", {relu6, Scalar(6)}), Op("Mul", {relu6, sixth})}) {
    add("HardSigmoid",
        {.name = "hard sigmoid",
         .pattern = pattern,
         .when = [](const Match& match) { return IsNotOfDoubles(match) && ClipsToSix(match); },
         .replace = MakeHardSigmoid});
  }
  return fusions;
}

}  // namespace tenon
