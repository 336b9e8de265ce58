// Arithmetic on two or more tensors, with broadcasting, and Cast.
#include "webnn/emission.h"

namespace tenon::webnn {
namespace {

// Add-1 and similar operators broadcast by attributes.
Status CheckBroadcast(const NodeContext& context) {
  if (context.since() >= 7) return OkStatus();
  return NotImplemented("WebNN broadcasts as operators do since opset 7");
}

Status EmitBinary(NodeContext& context) {
  TENON_RETURN_IF_ERROR(CheckBroadcast(context));
  TENON_ASSIGN_OR_RETURN(const Operand a, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand b, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const Operand y, context.builder().Binary(context.method(), a, b));
  return context.SetOutput(0, y);
}

Status EmitPow(NodeContext& context) {
  TENON_RETURN_IF_ERROR(CheckBroadcast(context));
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand base, context.Input(0));
  TENON_ASSIGN_OR_RETURN(Operand exponent, context.Input(1));
  TENON_ASSIGN_OR_RETURN(exponent, builder.Cast(exponent, builder.TypeOf(base)));
  TENON_ASSIGN_OR_RETURN(const Operand y, builder.Binary("pow", base, exponent));
  return context.SetOutput(0, y);
}

// Combines all inputs, one after the other.
Result<Operand> Joined(NodeContext& context, std::string_view method) {
  TENON_ASSIGN_OR_RETURN(Operand joined, context.Input(0));
  for (size_t i = 1; i < context.input_count(); ++i) {
    TENON_ASSIGN_OR_RETURN(const Operand next, context.Input(i));
    TENON_ASSIGN_OR_RETURN(joined, context.builder().Binary(method, joined, next));
  }
  return joined;
}

Status EmitVariadic(NodeContext& context) {
  TENON_ASSIGN_OR_RETURN(const Operand y, Joined(context, context.method()));
  return context.SetOutput(0, y);
}

Status EmitMean(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand sum, Joined(context, "add"));
  TENON_ASSIGN_OR_RETURN(
      const Operand count,
      builder.Scalar(builder.TypeOf(sum), static_cast<double>(context.input_count())));
  TENON_ASSIGN_OR_RETURN(const Operand y, builder.Binary("div", sum, count));
  return context.SetOutput(0, y);
}

Status EmitPRelu(NodeContext& context) {
  TENON_RETURN_IF_ERROR(CheckBroadcast(context));
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  TENON_ASSIGN_OR_RETURN(const Operand slope, context.Input(1));
  TENON_ASSIGN_OR_RETURN(const Operand y,
                         builder.Call("prelu", {{"input", x}, {"slope", slope}}, {},
                                      {builder.TypeOf(x), builder.ShapeOf(x)}));
  return context.SetOutput(0, y);
}

// To bool: whether it is not 0.
Status EmitCast(NodeContext& context) {
  ProgramBuilder& builder = context.builder();
  TENON_ASSIGN_OR_RETURN(const Operand x, context.Input(0));
  if (context.OutputType(0) != DataType::kBool || context.InputType(0) == DataType::kBool) {
    TENON_ASSIGN_OR_RETURN(const Operand y, builder.Cast(x, context.OperandType(0)));
    return context.SetOutput(0, y);
  }
  TENON_ASSIGN_OR_RETURN(const Operand zero, builder.Scalar(builder.TypeOf(x), 0));
  TENON_ASSIGN_OR_RETURN(const Operand is_zero, builder.Binary("equal", x, zero, DataType::kUint8));
  TENON_ASSIGN_OR_RETURN(const Operand y, builder.Truth("logicalNot", is_zero));
  return context.SetOutput(0, y);
}

constexpr std::string_view kBroadcast = "since opset 7";

constexpr Row kRows[] = {
    {"Add", EmitBinary, "add", kBroadcast},
    {"Cast", EmitCast, "cast"},
    {"CastLike", EmitCast, "cast"},
    {"Div", EmitBinary, "div", kBroadcast},
    {"Max", EmitVariadic, "max"},
    {"Mean", EmitMean, "add"},
    {"Min", EmitVariadic, "min"},
    {"Mul", EmitBinary, "mul", kBroadcast},
    {"PRelu", EmitPRelu, "prelu", kBroadcast},
    {"Pow", EmitPow, "pow", kBroadcast},
    {"Sub", EmitBinary, "sub", kBroadcast},
    {"Sum", EmitVariadic, "add"},
};

}  // namespace

TENON_WEBNN_FAMILY(Elementwise, kRows);

}  // namespace tenon::webnn
