// Operators that compute each element of the result from those at its place.

#include <string>
#include <unordered_map>

#include "operators.h"

namespace codegen {
namespace {

Status Broadcast(Planner& planner, const Node& node, DataType type, const std::string& expression,
                 std::vector<TensorRef> operands) {
  Shape shape;
  for (const TensorRef& operand : operands) {
    PLUGIN_ASSIGN_OR_RETURN(shape, BroadcastShape(shape, operand->shape));
  }
  return planner.SetOutput(
      node, 0, planner.Expression(type, std::move(shape), expression, std::move(operands)));
}

// Expressions over the one operand $0, by operator. Constants of more digits than a float has.
const std::unordered_map<std::string_view, std::string_view> kUnary = {
    {"Abs", "fabs($0)"},
    {"Neg", "-$0"},
    {"Exp", "exp($0)"},
    {"Log", "log($0)"},
    {"Sqrt", "sqrt($0)"},
    {"Reciprocal", "1.0f / $0"},
    {"Floor", "floor($0)"},
    {"Ceil", "ceil($0)"},
    {"Round", "rint($0)"},
    {"Sign", "sign($0)"},
    {"Sin", "sin($0)"},
    {"Cos", "cos($0)"},
    {"Tanh", "tanh($0)"},
    {"Erf", "erf($0)"},
    {"Sigmoid", "1.0f / (1.0f + exp(-$0))"},
    {"Relu", "$0 < 0.0f ? 0.0f : $0"},  // NaN stays NaN
    {"Softplus", "fmax($0, 0.0f) + log1p(exp(-fabs($0)))"},
    {"Softsign", "$0 / (1.0f + fabs($0))"},
    {"HardSwish", "$0 * clamp($0 / 6.0f + 0.5f, 0.0f, 1.0f)"},
    {"Mish", "$0 * tanh(fmax($0, 0.0f) + log1p(exp(-fabs($0))))"},
    {"QuickGelu", "$0 / (1.0f + exp(-1.702f * $0))"},
};

// Over $0 and $1.
const std::unordered_map<std::string_view, std::string_view> kBinary = {
    {"Add", "$0 + $1"},
    {"Sub", "$0 - $1"},
    {"Mul", "$0 * $1"},
    {"Div", "$0 / $1"},
    {"Equal", "$0 == $1"},
    {"Less", "$0 < $1"},
    {"LessOrEqual", "$0 <= $1"},
    {"Greater", "$0 > $1"},
    {"GreaterOrEqual", "$0 >= $1"},
    {"And", "$0 && $1"},
    {"Or", "$0 || $1"},
    {"Xor", "$0 != $1"},
    {"PRelu", "$0 < 0.0f ? $0 * $1 : $0"},
};

Status LowerUnary(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  std::string expression(kUnary.at(node.type));
  if (!IsFloat(x->type)) {  // claimed for Abs, Neg and Sign only
    expression = node.type == "Neg"   ? "-$0"
                 : node.type == "Abs" ? "$0 < 0 ? -$0 : $0"
                                      : "($0 > 0) - ($0 < 0)";
  }
  return Broadcast(planner, node, x->type, expression, {x});
}

Status LowerNot(Planner& planner, const Node& node) {
  return Broadcast(planner, node, DataType::kBool, "!$0", {planner.Input(node, 0)});
}

// Division of integers by zero is undefined on devices too, but must not stop the device.
std::string BinaryExpression(const Node& node, DataType type) {
  if (node.type == "Div" && !IsFloat(type)) return "$1 == 0 ? 0 : $1 == -1 ? -$0 : $0 / $1";
  return std::string(kBinary.at(node.type));
}

Status LowerBinary(Planner& planner, const Node& node) {
  const TensorRef a = planner.Input(node, 0);
  if (node.type == "Add") {
    PLUGIN_ASSIGN_OR_RETURN(TensorRef sum, planner.Add(a, planner.Input(node, 1)));
    return planner.SetOutput(node, 0, std::move(sum));
  }
  return Broadcast(planner, node, a->type, BinaryExpression(node, a->type),
                   {a, planner.Input(node, 1)});
}

Status LowerComparison(Planner& planner, const Node& node) {
  return Broadcast(planner, node, DataType::kBool, std::string(kBinary.at(node.type)),
                   {planner.Input(node, 0), planner.Input(node, 1)});
}

Status LowerMod(Planner& planner, const Node& node) {
  const TensorRef a = planner.Input(node, 0);
  std::string expression = "fmod($0, $1)";
  if (!IsFloat(a->type)) {
    expression = node.Int("fmod", 0) ? "$1 == 0 || $1 == -1 ? 0 : $0 % $1"
                                     : "$1 == 0 || $1 == -1 ? 0 : (($0 % $1) + $1) % $1";
  }
  return Broadcast(planner, node, a->type, expression, {a, planner.Input(node, 1)});
}

Status LowerPow(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const TensorRef exponent = planner.Input(node, 1);
  if (exponent->scalar && *exponent->scalar == 2.0f) {
    return Broadcast(planner, node, x->type, "$0 * $0", {x});
  }
  return Broadcast(planner, node, x->type, "pow($0, $1)", {x, exponent});
}

// Max, Min, Sum and Mean of any number of operands.
Status LowerVariadic(Planner& planner, const Node& node) {
  std::vector<TensorRef> operands;
  Shape shape;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    operands.push_back(planner.Input(node, i));
    PLUGIN_ASSIGN_OR_RETURN(shape, BroadcastShape(shape, operands.back()->shape));
  }
  const DataType type = operands[0]->type;
  const bool is_float = IsFloat(type);
  TensorRef sum = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    PLUGIN_ASSIGN_OR_RETURN(Shape partial, BroadcastShape(sum->shape, operands[i]->shape));
    std::string expression = "$0 + $1";
    // The first operand also if it is NaN: a comparison with NaN is false.
    if (node.type == "Max")
      expression = is_float ? "isnan($1) ? $1 : $1 > $0 ? $1 : $0" : "$1 > $0 ? $1 : $0";
    if (node.type == "Min")
      expression = is_float ? "isnan($1) ? $1 : $1 < $0 ? $1 : $0" : "$1 < $0 ? $1 : $0";
    sum = planner.Expression(type, std::move(partial), expression, {sum, operands[i]});
  }
  if (node.type == "Mean") {
    sum = planner.Expression(type, shape, fmt::format("$0 / {}.0f", operands.size()), {sum});
  } else if (operands.size() == 1) {
    sum = planner.Expression(type, shape, "$0", {sum});
  }
  return planner.SetOutput(node, 0, sum);
}

Status LowerWhere(Planner& planner, const Node& node) {
  const TensorRef a = planner.Input(node, 1);
  return Broadcast(planner, node, a->type, "$0 ? $1 : $2",
                   {planner.Input(node, 0), a, planner.Input(node, 2)});
}

Status LowerCast(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const DataType to = node.type == "CastLike"
                          ? planner.Input(node, 1)->type
                          : FromOnnx(static_cast<ONNXTensorElementDataType>(node.Int("to", 0)));
  // What lies in memory as a shorter type is read as float anyway.
  if (IsFloat(x->type) && x->type != to && to == DataType::kFloat && x->storage >= 0) {
    PLUGIN_ASSIGN_OR_RETURN(TensorRef y, planner.View(x, x->shape, x->strides, 0));
    y->type = to;
    y->scalar = x->scalar;
    return planner.SetOutput(node, 0, std::move(y));
  }
  std::string expression = to == DataType::kBool ? "$0 != 0" : fmt::format("({})$0", NameOf(to));
  // The result may never be in memory, where it would be rounded.
  if (to == DataType::kFloat16) expression = fmt::format("round_to_half({})", expression);
  if (to == DataType::kBFloat16) expression = fmt::format("round_to_bfloat16({})", expression);
  return Broadcast(planner, node, to, expression, {x});
}

// Since Clip-11 the limits are inputs.
Status LowerClip(Planner& planner, const Node& node) {
  TensorRef x = planner.Input(node, 0);
  const DataType type = x->type;
  const auto limit = [&](size_t input, const char* attribute, const char* expression) {
    if (planner.HasInput(node, input)) {
      x = planner.Expression(type, x->shape, expression, {x, planner.Input(node, input)});
    } else if (node.Has(attribute)) {
      const TensorRef value = std::make_shared<Tensor>(type, Shape{});
      value->scalar = node.Float(attribute, 0);
      x = planner.Expression(type, x->shape, expression, {x, value});
    }
  };
  limit(1, "min", "$0 < $1 ? $1 : $0");
  limit(2, "max", "$0 > $1 ? $1 : $0");
  return planner.SetOutput(node, 0, planner.Expression(type, x->shape, "$0", {x}));
}

// Operators with float attributes.
Status LowerParametric(Planner& planner, const Node& node) {
  const TensorRef x = planner.Input(node, 0);
  const auto number = [](float value) { return fmt::format("({:.9e}f)", value); };
  std::string expression;
  if (node.type == "LeakyRelu") {
    expression = fmt::format("$0 < 0.0f ? $0 * {} : $0", number(node.Float("alpha", 0.01f)));
  } else if (node.type == "Elu") {
    expression = fmt::format("$0 < 0.0f ? {} * expm1($0) : $0", number(node.Float("alpha", 1)));
  } else if (node.type == "Selu") {
    expression = fmt::format("{1} * ($0 > 0.0f ? $0 : {0} * expm1($0))",
                             number(node.Float("alpha", 1.67326319217681884765625f)),
                             number(node.Float("gamma", 1.05070102214813232421875f)));
  } else {  // HardSigmoid; NaN stays NaN
    const TensorRef line =
        planner.Expression(x->type, x->shape,
                           fmt::format("{} * $0 + {}", number(node.Float("alpha", 0.2f)),
                                       number(node.Float("beta", 0.5f))),
                           {x});
    return Broadcast(planner, node, x->type, "$0 < 0.0f ? 0.0f : $0 > 1.0f ? 1.0f : $0", {line});
  }
  return Broadcast(planner, node, x->type, expression, {x});
}

// Gelu-20 and com.microsoft's Gelu, FastGelu and BiasGelu, the last two with a bias.
Status LowerGelu(Planner& planner, const Node& node) {
  TensorRef x = planner.Input(node, 0);
  if (planner.HasInput(node, 1)) {
    x = planner.Expression(x->type, x->shape, "$0 + $1", {x, planner.Input(node, 1)});
  }
  const bool is_tanh = node.type == "FastGelu" || node.String("approximate", "none") == "tanh";
  const std::string expression =
      is_tanh ? "0.5f * $0 * (1.0f + tanh(0.7978845608028654f * ($0 + 0.044715f * $0 * $0 * $0)))"
              : "0.5f * $0 * (1.0f + erf($0 * 0.7071067811865476f))";
  return planner.SetOutput(node, 0, planner.Expression(x->type, x->shape, expression, {x}));
}

bool IsBroadcastOfOneType(const Graph& graph, const Node& node) {
  for (const int input : node.inputs) {
    if (input < 0 || graph.value(input).type != graph.value(node.inputs[0]).type) return false;
  }
  return true;
}

bool IsFloatPower(const Graph& graph, const Node& node) {
  return IsFloat(graph.value(node.inputs[0]).type) && IsFloat(graph.value(node.inputs[1]).type);
}

bool IsPlainGelu(const Graph&, const Node& node) {
  const std::string kind = node.String("approximate", "none");
  return kind == "none" || kind == "tanh";
}

}  // namespace

std::span<const Operator> ElementwiseOperators() {
  static const std::vector<Operator> kRows = [] {
    std::vector<Operator> rows;
    for (const auto& [name, expression] : kUnary) {
      const bool any = name == "Abs" || name == "Neg" || name == "Sign";
      rows.push_back({.type = name, .lower = LowerUnary, .types = any ? kNumbers : kFloats});
    }
    for (const char* name : {"Add", "Sub", "Mul", "Div", "PRelu"}) {
      rows.push_back({.type = name,
                      .lower = LowerBinary,
                      .types = kNumbers,
                      .accepts = IsBroadcastOfOneType,
                      .since = 7});
    }
    for (const char* name :
         {"Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "And", "Or", "Xor"}) {
      rows.push_back(
          {.type = name, .lower = LowerComparison, .accepts = IsBroadcastOfOneType, .since = 7});
    }
    for (const char* name : {"Max", "Min", "Sum", "Mean"}) {
      rows.push_back({.type = name,
                      .lower = LowerVariadic,
                      .types = std::string_view(name) == "Mean" ? kFloats : kNumbers,
                      .accepts = IsBroadcastOfOneType,
                      .since = 8});
    }
    for (const char* name : {"LeakyRelu", "Elu", "Selu", "HardSigmoid"}) {
      rows.push_back({.type = name, .lower = LowerParametric, .types = kFloats, .since = 6});
    }
    rows.push_back(
        {.type = "Mod", .lower = LowerMod, .types = kNumbers, .accepts = IsBroadcastOfOneType});
    rows.push_back(
        {.type = "Pow", .lower = LowerPow, .types = kFloats, .accepts = IsFloatPower, .since = 7});
    rows.push_back({.type = "Not", .lower = LowerNot});
    rows.push_back({.type = "Where", .lower = LowerWhere});
    rows.push_back({.type = "Cast", .lower = LowerCast, .since = 6});
    rows.push_back({.type = "CastLike", .lower = LowerCast});
    rows.push_back({.type = "Clip", .lower = LowerClip, .types = kNumbers, .since = 6});
    rows.push_back({.type = "Gelu", .lower = LowerGelu, .types = kFloats, .accepts = IsPlainGelu});
    for (const char* name : {"Gelu", "FastGelu", "BiasGelu"}) {
      rows.push_back(
          {.type = name, .lower = LowerGelu, .types = kFloats, .domain = "com.microsoft"});
    }
    return rows;
  }();
  return kRows;
}

}  // namespace codegen
