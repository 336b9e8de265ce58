// Functions of one tensor, element by element, and Softmax.
#include <cmath>

#include "ops/framework/unary_node.h"
#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

Status EmitUnary(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand y, context.builder().Unary(context.method(), x));
  return context.SetOutput(0, y);
}

// The two parameters of a node's function: alpha, and beta or gamma where it has one.
struct FunctionParameters {
  double first, second;
};
Result<FunctionParameters> ParametersOf(NodeContext& context) {
  const Node& node = context.node();
  TENON_ASSIGN_OR_RETURN(const auto spec, UnarySpecOf(node, *UnaryOpOf(node)));
  return FunctionParameters{spec.alpha, spec.beta};
}

Status EmitWithAlpha(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const auto parameters, ParametersOf(context));
  TENON_ASSIGN_OR_RETURN(
      const Operand y, context.builder().Unary(context.method(), x, {{"alpha", parameters.first}}));
  return context.SetOutput(0, y);
}

Status EmitHardSigmoid(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const auto parameters, ParametersOf(context));
  TENON_ASSIGN_OR_RETURN(const Operand y, context.builder().Unary(context.method(), x,
                                                                  {{"alpha", parameters.first},
                                                                   {"beta", parameters.second}}));
  return context.SetOutput(0, y);
}

// 0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))
Result<Operand> TanhGelu(ProgramBuilder& b, Operand x) {
  const DataType type = b.TypeOf(x);
  const auto scaled = [&](Operand operand, double factor) -> Result<Operand> {
    TENON_ASSIGN_OR_RETURN(const Operand scalar, b.Scalar(type, factor));
    return b.Binary("mul", operand, scalar);
  };
  TENON_ASSIGN_OR_RETURN(const Operand square, b.Binary("mul", x, x));
  TENON_ASSIGN_OR_RETURN(const Operand cube, b.Binary("mul", square, x));
  TENON_ASSIGN_OR_RETURN(const Operand correction, scaled(cube, 0.044715));
  TENON_ASSIGN_OR_RETURN(const Operand sum, b.Binary("add", x, correction));
  TENON_ASSIGN_OR_RETURN(const Operand argument, scaled(sum, std::sqrt(2 / std::acos(-1.0))));
  TENON_ASSIGN_OR_RETURN(const Operand tanh, b.Unary("tanh", argument));
  TENON_ASSIGN_OR_RETURN(const Operand one, b.Scalar(type, 1));
  TENON_ASSIGN_OR_RETURN(const Operand factor, b.Binary("add", tanh, one));
  TENON_ASSIGN_OR_RETURN(const Operand half, scaled(x, 0.5));
  return b.Binary("mul", half, factor);
}

// The input with the bias that is input 1, if there is one.
Result<Operand> Biased(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  if (!context.HasInput(1)) return x;
  TENON_ASSIGN_OR_RETURN(const Operand bias, context.Input(1));
  return context.builder().Binary("add", x, bias);
}

Status EmitGelu(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand x, Biased(context));
  const bool is_exact = context.node().GetString("approximate", "none") == "none";
  TENON_ASSIGN_OR_RETURN(const Operand y, is_exact ? context.builder().Unary("gelu", x)
                                                   : TanhGelu(context.builder(), x));
  return context.SetOutput(0, y);
}

Status EmitFastGelu(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand x, Biased(context));
  TENON_ASSIGN_OR_RETURN(const Operand y, TanhGelu(context.builder(), x));
  return context.SetOutput(0, y);
}

// x * sigmoid(alpha x)
Status EmitSwish(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const auto parameters, ParametersOf(context));
  const double alpha = parameters.first;
  Operand scaled = x;
  if (alpha != 1) {
    TENON_ASSIGN_OR_RETURN(const Operand factor, b.Scalar(b.TypeOf(x), alpha));
    TENON_ASSIGN_OR_RETURN(scaled, b.Binary("mul", x, factor));
  }
  TENON_ASSIGN_OR_RETURN(const Operand gate, b.Unary("sigmoid", scaled));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Binary("mul", x, gate));
  return context.SetOutput(0, y);
}

// x * tanh(softplus(x))
Status EmitMish(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand softplus, b.Unary("softplus", x));
  TENON_ASSIGN_OR_RETURN(const Operand tanh, b.Unary("tanh", softplus));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Binary("mul", x, tanh));
  return context.SetOutput(0, y);
}

// gamma * elu(x, alpha), as both branches of the operator have the factor.
Status EmitSelu(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const auto parameters, ParametersOf(context));
  TENON_ASSIGN_OR_RETURN(const Operand elu, b.Unary("elu", x, {{"alpha", parameters.first}}));
  TENON_ASSIGN_OR_RETURN(const Operand factor, b.Scalar(b.TypeOf(x), parameters.second));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Binary("mul", elu, factor));
  return context.SetOutput(0, y);
}

// max(0, x) + min(0, alpha (exp(x / alpha) - 1))
Status EmitCelu(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const auto parameters, ParametersOf(context));
  TENON_ASSIGN_OR_RETURN(const Operand divisor, b.Scalar(b.TypeOf(x), parameters.first));
  TENON_ASSIGN_OR_RETURN(const Operand quotient, b.Binary("div", x, divisor));
  TENON_ASSIGN_OR_RETURN(const Operand elu, b.Unary("elu", quotient, {{"alpha", 1.0}}));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Binary("mul", elu, divisor));
  return context.SetOutput(0, y);
}

// x where x > alpha, else 0.
Status EmitThresholdedRelu(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const auto parameters, ParametersOf(context));
  TENON_ASSIGN_OR_RETURN(const Operand alpha, b.Scalar(b.TypeOf(x), parameters.first));
  TENON_ASSIGN_OR_RETURN(const Operand zero, b.Scalar(b.TypeOf(x), 0));
  TENON_ASSIGN_OR_RETURN(const Operand passes, b.Binary("greater", x, alpha, DataType::kUint8));
  TENON_ASSIGN_OR_RETURN(
      const Operand y,
      b.Call("where", {{"condition", passes}, {"trueValue", x}, {"falseValue", zero}}, {},
             {b.TypeOf(x), b.ShapeOf(x)}));
  return context.SetOutput(0, y);
}

Status EmitClip(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  constexpr std::string_view kNames[] = {"min", "max"};
  constexpr std::string_view kOptions[] = {"minValue", "maxValue"};
  double bounds[] = {-INFINITY, INFINITY};
  Parameters options;
  for (size_t i = 0; i < 2; ++i) {
    const Attribute* const attribute = context.node().FindAttribute(kNames[i]);
    if (context.HasInput(i + 1)) {
      TENON_ASSIGN_OR_RETURN(bounds[i], context.Number(i + 1));
    } else if (attribute != nullptr && context.since() < 11) {
      bounds[i] = context.node().GetFloat(kNames[i], 0);
    } else {
      continue;
    }
    options.push_back({kOptions[i], bounds[i]});
  }
  if (!(bounds[0] <= bounds[1])) {
    return NotImplemented("WebNN does not clamp to the empty range [{}, {}]", bounds[0], bounds[1]);
  }
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Unary("clamp", x, std::move(options)));
  return context.SetOutput(0, y);
}

Result<Operand> SoftmaxOver(ProgramBuilder& b, Operand x, int64_t axis) {
  return b.Call("softmax", {{"input", x}, {"", axis}}, {}, {b.TypeOf(x), b.ShapeOf(x)});
}

// log(softmax(x)) without the loss of small probabilities.
Result<Operand> LogSoftmaxOver(ProgramBuilder& b, Operand x, int64_t axis) {
  TENON_ASSIGN_OR_RETURN(const Operand largest, b.Reduce("reduceMax", x, {axis}, true));
  TENON_ASSIGN_OR_RETURN(const Operand shifted, b.Binary("sub", x, largest));
  TENON_ASSIGN_OR_RETURN(const Operand exp, b.Unary("exp", shifted));
  TENON_ASSIGN_OR_RETURN(const Operand sum, b.Reduce("reduceSum", exp, {axis}, true));
  TENON_ASSIGN_OR_RETURN(const Operand log, b.Unary("log", sum));
  return b.Binary("sub", shifted, log);
}

// Softmax-1 and LogSoftmax-1 go over all axes from `axis` on.
Status EmitSoftmax(NodeContext& context) {
  ProgramBuilder& b = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  const Shape shape = b.ShapeOf(x);
  const bool flattens = context.since() < 13;
  TENON_ASSIGN_OR_RETURN(
      const int64_t axis,
      context.Axis(context.node().GetInt("axis", flattens ? 1 : -1), shape.rank()));
  const auto over = context.node().op_type == "Softmax" ? &SoftmaxOver : &LogSoftmaxOver;
  if (!flattens || axis + 1 == static_cast<int64_t>(shape.rank())) {
    TENON_ASSIGN_OR_RETURN(const Operand y, over(b, x, axis));
    return context.SetOutput(0, y);
  }
  const auto begin = static_cast<size_t>(axis);
  TENON_ASSIGN_OR_RETURN(
      const Operand flat,
      b.Reshape(x, Shape({shape.Product(0, begin), shape.Product(begin, shape.rank())})));
  TENON_ASSIGN_OR_RETURN(const Operand result, over(b, flat, 1));
  TENON_ASSIGN_OR_RETURN(const Operand y, b.Reshape(result, shape));
  return context.SetOutput(0, y);
}

// Inference: the output is the input.
Status EmitDropout(NodeContext& context) {
  TENON_RETURN_IF_ERROR(context.RefuseOutput(1));
  bool trains = context.since() < 7 && context.node().GetInt("is_test", 0) == 0;
  if (context.HasInput(2)) {
    TENON_ASSIGN_OR_RETURN(const double mode, context.Number(2));
    trains = mode != 0;
  }
  if (trains) return NotImplemented("WebNN has no random numbers, which training takes");
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand y, context.builder().Unary("identity", x));
  return context.SetOutput(0, y);
}

constexpr std::string_view kBounds = "bounds are constants, and no range is empty";
constexpr std::string_view kMicrosoft = "com.microsoft";

constexpr Row kRows[] = {
    {"Abs", EmitUnary, "abs"},
    {"BiasGelu", EmitGelu, "gelu", "", kMicrosoft},
    {"Ceil", EmitUnary, "ceil"},
    {"Celu", EmitCelu, "elu"},
    {"Clip", EmitClip, "clamp", kBounds},
    {"Cos", EmitUnary, "cos"},
    {"Dropout", EmitDropout, "identity", "no training, no mask"},
    {"Elu", EmitWithAlpha, "elu"},
    {"Erf", EmitUnary, "erf"},
    {"Exp", EmitUnary, "exp"},
    {"FastGelu", EmitFastGelu, "tanh", "", kMicrosoft},
    {"Floor", EmitUnary, "floor"},
    {"Gelu", EmitGelu, "gelu"},
    {"Gelu", EmitGelu, "gelu", "", kMicrosoft},
    {"HardSigmoid", EmitHardSigmoid, "hardSigmoid"},
    {"HardSwish", EmitUnary, "hardSwish"},
    {"Identity", EmitUnary, "identity", "", "", true},
    {"LeakyRelu", EmitWithAlpha, "leakyRelu"},
    {"Log", EmitUnary, "log"},
    {"LogSoftmax", EmitSoftmax, "reduceMax"},
    {"Mish", EmitMish, "softplus"},
    {"Neg", EmitUnary, "neg"},
    {"QuickGelu", EmitSwish, "sigmoid", "", kMicrosoft},
    {"Reciprocal", EmitUnary, "reciprocal"},
    {"Relu", EmitUnary, "relu"},
    {"Round", EmitUnary, "roundEven"},
    {"Selu", EmitSelu, "elu"},
    {"Sigmoid", EmitUnary, "sigmoid"},
    {"Sign", EmitUnary, "sign"},
    {"Sin", EmitUnary, "sin"},
    {"Softmax", EmitSoftmax, "softmax"},
    {"Softplus", EmitUnary, "softplus"},
    {"Softsign", EmitUnary, "softsign"},
    {"Sqrt", EmitUnary, "sqrt"},
    {"Swish", EmitSwish, "sigmoid"},
    {"Tan", EmitUnary, "tan"},
    {"Tanh", EmitUnary, "tanh"},
    {"ThresholdedRelu", EmitThresholdedRelu, "where"},
};

}  // namespace

TENON_WEBNN_FAMILY(Activation, kRows);

}  // namespace tenon::webnn
